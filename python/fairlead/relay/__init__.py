"""The relay plane's application: an ASGI front before the engine in ``fairlead._core``.

granian loads ``fairlead.relay:create``. Everything that matters happens in Rust; this package reads bodies, hands them
over, and sends what comes back.
"""

from fairlead.relay.application import Relay, create

__all__ = ["Relay", "create"]
