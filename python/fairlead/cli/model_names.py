"""Models, combos and aliases that callers can name, and what to say of a name that is none of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from fairlead.text.near_names import did_you_mean

if TYPE_CHECKING:
    from fairlead.cli.instance import Instance

_AUTOMATIC: Final = ("auto", "auto/")
"""Names that the gateway resolves itself."""


def callable_names(instance: Instance) -> list[str]:
    """Every name that `GET /v1/models` lists."""
    return [str(model["id"]) for model in instance.get("/v1/models")["data"]]


def unknown_model_warning(model: str, known: Iterable[str]) -> str | None:
    """A warning where no provider that is set up can serve the name; None where one may.

    A model that is not listed may still be served under a prefix that is known.
    """
    names = list(known)
    prefixes = {name.partition("/")[0] for name in names}
    if model in names or model == _AUTOMATIC[0] or model.startswith(_AUTOMATIC[1]):
        return None
    prefix, slash, _ = model.partition("/")
    if slash and prefix in prefixes and prefix != "combo":
        near = did_you_mean(model, names)
        return f"`{prefix}` lists no model with the name `{model}`.{near}" if near else None
    return f"no provider or combo serves `{model}`.{did_you_mean(model, names)}"
