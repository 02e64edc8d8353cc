"""Addresses: what a host is, which hosts the gateway may call, and why a connection failed."""
