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

Any key can call models, within its other fields. `manage` and `admin` open the whole management API except
routes that need a signed-in person. Each scope below opens only the routes that it names; a key can have
several. If the key's `allowedEndpoints` are set, they must include `management`. A scope marked *own* shows only rows
of the key itself, and of the connections that it may use. Other scopes are refused, because they would
open nothing: any key can call models and search, and tool clients use separate tokens.

| scope | what it is for | routes |
| --- | --- | --- |
"""


PEOPLE = """
## Operations that no key and no access token may perform

Signed-in operators and the local command line alone decide who may come in and what leaves for a place that operators
watch. A key of any scope, and an access token of any scope, is answered 403 at these routes:

| route | what it does |
| --- | --- |
"""

FIELDS = """
These routes take other fields from keys (`manage`) and access tokens (`admin`), and answer 403 to the whole
request when one
of these is in it. A name that ends with `*` stands for all that begin so. A `PUT` by a key or an access token
leaves the settings as they are that it may not set.

| route | fields for people only |
| --- | --- |
"""

CHOICES = """
A key with `manage` still sets proxies and providers: it chooses where calls of models go, and no stored secret
goes to a new
address with them. It still sets `captureBodies` of one key, whose bodies it may also read as `read:bodies` does;
the setting for all keys is for people. Filters of addresses of one key (`ipAllowlist`) belong to the key.
"""


def scopes_reference() -> str:
    """The page."""
    rows = []
    for scope in _core.key_scopes():
        routes = "<br>".join(f"`{method} {path}`" for method, path in scope["routes"])
        own = " *Own.*" if scope["is_own"] else ""
        rows.append(f"| `{scope['scope']}` | {scope['summary']}{own} | {routes} |\n")
    return HEAD + "".join(rows) + PEOPLE + _peoples_routes() + FIELDS + _peoples_fields() + CHOICES


def _peoples_routes() -> str:
    return "".join(
        f"| `{route['method']} {route['path']}` | {route['summary']} |\n"
        for route in _core.routes()
        if route["tier"] == "session" and route["method"] != "GET"
    )


def _peoples_fields() -> str:
    return "".join(
        f"| `{route['method']} {route['path']}` | {', '.join(f'`{name}`' for name in route['peoples_fields'])} |\n"
        for route in _core.routes()
        if route["peoples_fields"]
    )


def main() -> None:
    """Writes the committed copy."""
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/reference/scopes.md")
    target.write_text(scopes_reference(), encoding="utf-8")


if __name__ == "__main__":
    main()
