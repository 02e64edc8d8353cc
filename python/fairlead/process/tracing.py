"""Tracing settings from the environment variables of OpenTelemetry's specification.

Traces are on when an endpoint is set (`OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` or `OTEL_EXPORTER_OTLP_ENDPOINT`),
or by `OTEL_TRACES_EXPORTER=otlp`, which uses the default endpoint. `OTEL_SDK_DISABLED=true` and
`OTEL_TRACES_EXPORTER=none` turn them off. The exporter itself, which runs in control, reads the other names
(`OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_BSP_*`, ...).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from fairlead.errors import Refusal
from fairlead.process.extra import install_command, is_installed

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_SAMPLERS: Final = (
    "always_on",
    "always_off",
    "traceidratio",
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
)


@dataclass(frozen=True, slots=True)
class Sampling:
    """The sampling rule.

    `ratio` (0 to 1) is the share of traced requests among those without a sampling decision of their caller;
    `parent_based` says whether a caller's decision is honoured.
    """

    ratio: float
    parent_based: bool

    def document(self) -> dict[str, Any]:
        """The JSON form in the relay's configuration."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Batching:
    """Bounds of the span exporter: queue length, spans per batch, and the interval in milliseconds."""

    queue_max: int
    batch_max: int
    every_ms: int


def read_batching(environment: Mapping[str, str]) -> Batching | None:
    """The exporter's bounds, None when tracing is off. A value that is no whole number above zero falls back to
    the specification's default.
    """
    if read_sampling(environment) is None:
        return None
    return Batching(
        queue_max=_number(environment, "OTEL_BSP_MAX_QUEUE_SIZE", 2048),
        batch_max=_number(environment, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512),
        every_ms=_number(environment, "OTEL_BSP_SCHEDULE_DELAY", 5000),
    )


def read_sampling(environment: Mapping[str, str]) -> Sampling | None:
    """The sampling rule, None when tracing is off. `Refusal` names the variable that is wrong, or the command
    that installs the missing packages.
    """
    exporter = _value_of(environment, "OTEL_TRACES_EXPORTER")
    is_off = (_value_of(environment, "OTEL_SDK_DISABLED") or "").lower() == "true"
    has_address = any(_value_of(environment, name) for name in _ENDPOINTS)
    if is_off or exporter == "none" or (exporter is None and not has_address):
        return None
    if exporter not in (None, "otlp"):
        raise Refusal("OTEL_TRACES_EXPORTER must be `otlp` or `none`.")
    for name in _PROTOCOLS:
        if _value_of(environment, name) not in (None, "http/protobuf"):
            raise Refusal(
                f"{name} must be `http/protobuf`: name the collector's OTLP/HTTP port, usually 4318."
            )
    if not is_installed("telemetry"):
        raise Refusal(
            f"Traces need OpenTelemetry's packages: run `{install_command('telemetry')}`, or set "
            "OTEL_SDK_DISABLED=true."
        )
    return _sampling(environment)


def _sampling(environment: Mapping[str, str]) -> Sampling:
    sampler = _value_of(environment, "OTEL_TRACES_SAMPLER") or "parentbased_always_on"
    if sampler not in _SAMPLERS:
        raise Refusal(f"OTEL_TRACES_SAMPLER must be one of {', '.join(_SAMPLERS)}.")
    ratio = 0.0 if sampler.endswith("always_off") else 1.0
    if sampler.endswith("traceidratio"):
        try:
            ratio = float(_value_of(environment, "OTEL_TRACES_SAMPLER_ARG") or 1.0)
        except ValueError:
            ratio = -1.0
        if not 0 <= ratio <= 1:
            raise Refusal("OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1.")
    return Sampling(ratio, sampler.startswith("parentbased_"))


def _number(environment: Mapping[str, str], name: str, default: int) -> int:
    text = _value_of(environment, name) or ""
    return int(text) if text.isascii() and text.isdecimal() and int(text) > 0 else default


def _value_of(environment: Mapping[str, str], name: str) -> str | None:
    # An empty value counts as unset (OpenTelemetry specification, "Parsing empty value").
    return environment.get(name, "").strip() or None
