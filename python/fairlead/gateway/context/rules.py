"""Rules between the settings of the context and what there is: a setting names only what exists."""

from __future__ import annotations

from typing import Final

from fairlead.errors import InvalidRequest
from fairlead.gateway.context.catalogue import check_languages, modes
from fairlead.gateway.context.table import find_pipeline_by_name
from fairlead.store.file import Connection
from fairlead.store.operator_settings import OperatorSettings

_PIPELINES: Final = {
    "compression_mode": "compressionMode",
    "compression_automatic_mode": "compressionAutomaticMode",
}


def check_context(con: Connection, settings: OperatorSettings, sent: frozenset[str]) -> None:
    """Checks the settings that were sent, in the writer."""
    for name, param in _PIPELINES.items():
        pipeline = getattr(settings, name)
        if name in sent and pipeline not in modes() and not find_pipeline_by_name(con, pipeline):
            raise InvalidRequest(
                f"{param} names `{pipeline}`: choose a mode ({', '.join(modes())}) or a pipeline of "
                "/api/context/combos.",
                param=param,
            )
    if "compression_languages" in sent:
        check_languages(settings.compression_languages, "compressionLanguages")
