"""Responses that are kept for their callers (`store`, `previous_response_id`), whoever answered them.

The relay keeps one before it tells the caller its end, and fetches what a request goes on from
before it asks a provider (`internal`). Callers read, delete and cancel them over `/v1/responses`
(`router`). Each belongs to the key that asked for it: for everybody else it is not there.
"""
