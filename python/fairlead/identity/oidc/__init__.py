"""Signing in at an identity provider (OpenID Connect, authorization code with PKCE)."""
