"""The process of one child: `python -m fairlead.serve relay|control|tunnel|acp|standin`.

Internal: `fairlead serve` starts these, with arguments on the command line and secrets in the environment.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from fairlead.serve.tether import tether_to


def main() -> None:
    """Reads the command line and serves until stopped."""
    parser = argparse.ArgumentParser(prog="python -m fairlead.serve", allow_abbrev=False)
    planes = parser.add_subparsers(dest="plane", required=True)
    relay = planes.add_parser("relay")
    relay.add_argument("--front", choices=("granian", "native"), default="granian")
    relay.add_argument("--host")
    relay.add_argument("--port", type=int)
    relay.add_argument("--max-open-streams", type=int)
    relay.add_argument("--tls-certificate", type=Path)
    relay.add_argument("--tls-key", type=Path)
    control = planes.add_parser("control")
    control.add_argument("--socket", type=Path, required=True)
    tunnel = planes.add_parser("tunnel")
    tunnel.add_argument("--socket", type=Path, required=True)
    acp = planes.add_parser("acp")
    acp.add_argument("--port", type=int, required=True)
    standin = planes.add_parser("standin")
    standin.add_argument("--host", required=True)
    standin.add_argument("--port", type=int, required=True)
    for each in (relay, control, tunnel, acp, standin):
        each.add_argument("--parent", type=int, required=True)

    given = vars(parser.parse_args())
    tether_to(given.pop("parent"))
    match given.pop("plane"), given.pop("front", None):
        case "relay", "native":
            from fairlead.serve.listener import serve_listener

            serve_listener()
        case "relay", _:
            from fairlead.serve.plane import serve_relay

            serve_relay(**given)
        case "control", _:
            from fairlead.serve.plane import serve_control

            serve_control(**given)
        case "tunnel", _:
            from fairlead.serve.tunnel_process import serve_tunnel

            serve_tunnel(**given)
        case "acp", _:
            from fairlead.serve.plane import serve_acp

            serve_acp(**given)
        case _:
            from fairlead.standin.server import serve

            serve(**given)


if __name__ == "__main__":
    main()
