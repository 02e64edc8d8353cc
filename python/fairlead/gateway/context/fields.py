"""Pipelines of an operator's own, as callers write them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, StrictStr, model_validator
from pydantic_core import PydanticCustomError

from fairlead.gateway.context.catalogue import catalogue, modes
from fairlead.store.operator_settings import CompressionLevel
from fairlead.wire import ChangeWire, NamedWire, renamed

STAGES_MAX = 12
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,99}")
_TAKEN = frozenset({"default"})


def _pipeline_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise PydanticCustomError(
            "name", "must have 1 to 100 letters, digits, blanks, dots, hyphens or underscores"
        )
    if name in modes() or name in _TAKEN:
        raise PydanticCustomError(
            "name", "must be another than those of the modes, and not `default`"
        )
    return name


def _engine(engine: str) -> str:
    known = catalogue()["engines"]
    if engine not in known:
        raise PydanticCustomError("engine", "must be one of {known}", {"known": ", ".join(known)})
    return engine


PipelineName = Annotated[StrictStr, AfterValidator(_pipeline_name)]


class PipelineStage(NamedWire):
    """One engine of a pipeline and how strongly it works."""

    @model_validator(mode="before")
    @classmethod
    def _reads_other_names(cls, body: Any) -> Any:
        return renamed(body, {"intensity": "level"})

    engine: Annotated[StrictStr, AfterValidator(_engine)]
    level: CompressionLevel = "standard"


_OTHER_NAMES: Mapping[str, str] = {"pipeline": "stages"}


class NewPipeline(NamedWire):
    """Engines in the order in which they run."""

    @model_validator(mode="before")
    @classmethod
    def _reads_other_names(cls, body: Any) -> Any:
        return renamed(body, _OTHER_NAMES)

    name: PipelineName
    description: StrictStr = Field("", max_length=1000)
    stages: list[PipelineStage] = Field(min_length=1, max_length=STAGES_MAX)


class PipelineChange(ChangeWire, NamedWire):
    """Fields of a pipeline; others keep their value."""

    other_names: ClassVar[Mapping[str, str]] = _OTHER_NAMES

    name: PipelineName | None = None
    description: StrictStr | None = Field(None, max_length=1000)
    stages: list[PipelineStage] | None = Field(None, min_length=1, max_length=STAGES_MAX)
