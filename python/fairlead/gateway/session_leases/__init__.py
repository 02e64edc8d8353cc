"""Leases of connections: one session has a connection to itself until it lets it go or falls silent."""
