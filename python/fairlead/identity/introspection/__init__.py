"""Introspection of agents' access tokens (RFC 7662): by the issuer in this process, or by one over
HTTP. It fails closed: what is not clearly an active token is none.
"""
