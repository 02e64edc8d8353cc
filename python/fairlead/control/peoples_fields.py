"""Fields that only people change, as the route table names them (`rust/core/src/routes/people.rs`).

A route with such fields takes the others from keys and access tokens too.
"""

from __future__ import annotations

import re
from typing import Final

import orjson

from fairlead import _core
from fairlead.calls.caller import Principal
from fairlead.control.answers import path_pattern
from fairlead.errors import Forbidden

PROGRAMS: Final = frozenset({"key", "token"})


def _plain(name: str) -> str:
    """A name in the one spelling in which names are compared: `oidcIssuer` and `oidc_issuer` are one."""
    return name.replace("_", "").lower()


def _pattern(names: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(_plain(name)).replace(r"\*", ".*") for name in names))


_GUARDED: Final = tuple(
    (
        route["method"],
        re.compile(path_pattern(str(route["path"]))),
        _pattern(route["peoples_fields"]),
    )
    for route in _core.routes()
    if route["peoples_fields"]
)


def refuse_programs(principal: Principal, method: str, path: str, body: bytes) -> None:
    """`Forbidden` for a key or an access token whose body names such a field, whether the gateway knows it or not.

    The body is strict JSON.
    """
    if principal.kind not in PROGRAMS:
        return
    for guarded_method, guarded_path, names in _GUARDED:
        if method != guarded_method or guarded_path.fullmatch(path) is None:
            continue
        sent = orjson.loads(body)
        if isinstance(sent, dict) and any(names.fullmatch(_plain(name)) for name in sent):
            raise Forbidden(
                "Security settings are for signed-in operators and the local command line; "
                "no key or access token of any scope may change them."
            )
