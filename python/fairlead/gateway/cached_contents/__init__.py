"""Cached contents, in Google's API: the beginning of requests, which the gateway stores.

It puts them in front of the requests that name them.
"""
