"""The credential of a connection, sealed with the connection's id: `{"api_key", "headers"}`, and
`aws`, `service_account` or `entra` where a key is not enough.

The headers are the node's. They are sealed into each connection, so that the relay opens one thing
and the snapshot needs no key. A change of the node's headers therefore reseals its connections
(`reseal_connections`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import orjson

from fairlead.gateway.nodes.table import Node
from fairlead.gateway.providers.endpoint import is_at_node
from fairlead.gateway.providers.table import Connection, connections_of, update_connection
from fairlead.store.file import Connection as Database
from fairlead.store.sealer import Sealer

# A key shorter than this gives too much away with its last characters.
SHOWN_FROM_CHARS = 12


@dataclass(frozen=True, slots=True)
class Credentials:
    """An opened credential. Its printed form does not contain it."""

    api_key: str | None = field(default=None, repr=False)
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    aws: dict[str, str | None] | None = field(default=None, repr=False)
    service_account: dict[str, Any] | None = field(default=None, repr=False)
    entra: dict[str, str] | None = field(default=None, repr=False)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to seal."""
        secrets = (self.api_key, self.headers, self.aws, self.service_account, self.entra)
        return not any(secrets)


def seal_credentials(sealer: Sealer, connection_id: str, credentials: Credentials) -> bytes | None:
    """The sealed form; None when there is nothing to seal."""
    if credentials.is_empty:
        return None
    fields = {name: value for name, value in asdict(credentials).items() if value is not None}
    return sealer.seal(connection_id, orjson.dumps(fields))


def open_credentials(sealer: Sealer, connection: Connection) -> Credentials:
    """The credential of a stored connection; `Internal` when it cannot be opened."""
    if connection.credentials_sealed is None:
        return Credentials()
    opened: dict[str, Any] = orjson.loads(
        sealer.unseal(connection.id, connection.credentials_sealed)
    )
    return Credentials(**opened)


def open_headers(sealer: Sealer, node: Node) -> dict[str, str]:
    """The node's own headers, opened."""
    if node.headers_sealed is None:
        return {}
    headers: dict[str, str] = orjson.loads(sealer.unseal(node.id, node.headers_sealed))
    return headers


def seal_headers(sealer: Sealer, node_id: str, headers: dict[str, str]) -> bytes | None:
    """The sealed form of a node's headers; None when there are none."""
    return sealer.seal(node_id, orjson.dumps(headers)) if headers else None


def reseal_connections(con: Database, sealer: Sealer, node: Node, headers: dict[str, str]) -> None:
    """Seals a node's headers into each of its connections, in the writer; connections at another
    host get none.
    """
    for connection in connections_of(con, node.id):
        own = headers if is_at_node(node, connection.provider_specific) else {}
        credentials = replace(open_credentials(sealer, connection), headers=own)
        sealed = seal_credentials(sealer, connection.id, credentials)
        update_connection(con, replace(connection, credentials_sealed=sealed))


def shown_tail(api_key: str) -> str:
    """The part of a key that may be shown: its last four characters, or nothing of a short key."""
    return api_key[-4:] if len(api_key) >= SHOWN_FROM_CHARS else ""
