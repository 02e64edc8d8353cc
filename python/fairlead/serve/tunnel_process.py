"""The process that connects a node to those of the other role: `python -m fairlead.serve tunnel --socket <path>`.

At a control it takes connections of relays over TLS. At a relay it takes those of the workers, and brings control what
they recorded.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

from fairlead.control.logs import configure_logs
from fairlead.net.node_link import NodeAddress, control_context, relay_context
from fairlead.serve.controls import Controls
from fairlead.serve.relay_entry import WAITING_MAX, RelayEntry
from fairlead.serve.shipment import Shipment
from fairlead.serve.tunnel import Tunnel, to_controls, to_socket


def serve_tunnel(*, socket: Path) -> None:
    """Serves until SIGTERM. The supervisor stops relay workers before, so a relay's node ships what they left."""
    configure_logs()
    document = json.loads(os.environ.pop("FAIRLEAD_TUNNEL_CONFIG"))
    asyncio.run(
        _at_control(document, socket) if document["listen"] else _at_relay(document, socket)
    )


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None


async def _at_control(document: dict[str, Any], socket: Path) -> None:
    context = control_context(
        Path(document["certificate"]), Path(document["key"]), _path(document["ca"])
    )
    entry = RelayEntry(Tunnel(to_socket(socket)), context, document["token"])
    server = await asyncio.start_server(
        entry.serve, document["listen"]["host"], document["listen"]["port"], backlog=WAITING_MAX
    )
    await _wait_for_signal()
    server.close()


async def _at_relay(document: dict[str, Any], socket: Path) -> None:
    context = relay_context(
        _path(document["certificate"]), _path(document["key"]), _path(document["ca"])
    )
    addresses = [NodeAddress(each["host"], each["port"]) for each in document["controls"]]
    controls = Controls(addresses, context)
    shipment = Shipment(
        controls, Path(document["data_dir"]), document["token"], document["workers"]
    )
    await asyncio.to_thread(socket.unlink, missing_ok=True)
    server = await asyncio.start_unix_server(Tunnel(to_controls(controls), controls).serve, socket)
    shipping = asyncio.create_task(shipment.run())
    stopping = asyncio.create_task(_wait_for_signal())
    await asyncio.wait({shipping, stopping}, return_when=asyncio.FIRST_COMPLETED)
    server.close()
    if not stopping.done():
        # It never ends normally: its defect is reported, the process ends, and the supervisor restarts it.
        await shipping
    shipping.cancel()
    await asyncio.gather(shipping, return_exceptions=True)
    await shipment.finish()


async def _wait_for_signal() -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGHUP, lambda: None)
    await stop.wait()
