"""Generates `docs/reference/scopes.md` from the table of scopes that the gate enforces.

`make reference` writes the page; a test compares the committed copy.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fairlead import _core

HEAD = """\
# Scopes of API keys

Written from the code by `make reference`.

Any key calls models, within its other fields. `manage` and `admin` open the management API as a whole but for
what needs a signed-in person. Each scope below opens the routes that it names and nothing else; a key may have
several. Where the key's `allowedEndpoints` are set, `management` must be among them. A scope marked *own* shows rows
of the key itself alone, and those of the connections that it may use. Other scopes are refused, because they would
open nothing: any key may call models and search, and tool clients have tokens of their own.

| scope | what it is for | routes |
| --- | --- | --- |
"""


def scopes_reference() -> str:
    """The page."""
    rows = []
    for scope in _core.key_scopes():
        routes = "<br>".join(f"`{method} {path}`" for method, path in scope["routes"])
        own = " *Own.*" if scope["is_own"] else ""
        rows.append(f"| `{scope['scope']}` | {scope['summary']}{own} | {routes} |\n")
    return HEAD + "".join(rows)


def main() -> None:
    """Writes the committed copy."""
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/reference/scopes.md")
    target.write_text(scopes_reference(), encoding="utf-8")


if __name__ == "__main__":
    main()
