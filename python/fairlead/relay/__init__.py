"""The relay plane's ASGI application in front of the engine, ``fairlead._core``.

granian loads ``fairlead.relay:create``. The engine does the work in Rust; this package passes request bodies in
and responses out.
"""

from fairlead.relay.application import Relay, create

__all__ = ["Relay", "create"]
