"""Responses that are stored for their callers (`store`, `previous_response_id`), and those that run
in the background.

The relay stores a response before it sends the caller its end, and fetches the conversation that a
request continues before it asks a provider (`internal`). Callers read, delete and cancel stored
responses at `/v1/responses` (`router`). Each belongs to the key that asked for it: for everybody
else it does not exist.
"""
