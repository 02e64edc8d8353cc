"""The token issuer in the box: OAuth 2.0 client credentials for agents' callers, with Hydra's admin
API over the clients.

One `Issuer` in one process owns `issuer.duckdb`; its two listeners, the public one for tokens and the admin one
on loopback, use that one object. The process is control (`ISSUER__ENABLED`) or a separate one (`fairlead
issuer`), see docs/explanation/decisions/2026-11-21-issuer-file.md.
"""
