"""Deadlines, repetitions and queues of every combo that does not set its own."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from fairlead.gateway.combos.rules import Prefix, TimeLimits, TimeoutMs
from fairlead.store.file import Connection
from fairlead.store.meta import read_meta, write_meta
from fairlead.wire import Wire

_NAME: Final = "combo_defaults"


class ProviderLimits(Wire):
    """Values for every target of one provider."""

    target_timeout_ms: TimeoutMs


class ComboDefaults(Wire):
    """A combo's own value goes before that of its target's provider, and that before the one for all."""

    combo_defaults: TimeLimits = TimeLimits()
    provider_overrides: Annotated[dict[Prefix, ProviderLimits], Field(max_length=500)] = Field(
        default={}
    )


def read_defaults(con: Connection) -> ComboDefaults:
    """The defaults in force."""
    stored = read_meta(con, _NAME)
    return ComboDefaults() if stored is None else ComboDefaults.model_validate_json(stored)


def write_defaults(con: Connection, defaults: ComboDefaults) -> None:
    """Stores the defaults, in the writer."""
    write_meta(con, _NAME, defaults.model_dump_json(by_alias=True, exclude_none=True))
