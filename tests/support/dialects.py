"""The stand-in provider behind a gateway, once in each dialect that it speaks."""

from __future__ import annotations

import secrets

from tests.support.processes import Gateway

DIALECTS = ("openai", "openai-responses", "anthropic", "gemini")
_BASES = {"gemini": "/v1beta"}


def add_standin(gateway: Gateway, url: str) -> dict[str, str]:
    """Nodes of their own in front of the stand-in at `url`: the prefix of its models for each dialect."""
    name = secrets.token_hex(4)
    prefixes = {}
    for dialect in DIALECTS:
        prefix = f"{dialect}-{name}"
        base_url = f"{url}{_BASES.get(dialect, '/v1')}"
        node = gateway.add_node(prefix, base_url, dialect=dialect)
        gateway.add_connection(node["id"], f"sk-{dialect}-standin-canary")
        prefixes[dialect] = prefix
    return prefixes
