"""When traces are asked for, and what is said when they cannot be had."""

from __future__ import annotations

import re

import pytest

from fairlead.errors import Refusal
from fairlead.process import extra
from fairlead.process.extra import install_command
from fairlead.process.tracing import Sampling, read_sampling

ASKED = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": ""},
        {"OTEL_SERVICE_NAME": "x", "OTEL_TRACES_SAMPLER": "nonsense"},
        {**ASKED, "OTEL_SDK_DISABLED": "TRUE"},
        {**ASKED, "OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_nobody_is_traced_unasked(environment: dict[str, str]) -> None:
    assert read_sampling(environment) is None


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, Sampling(1, True)),
        ({"OTEL_TRACES_SAMPLER": "always_on"}, Sampling(1, False)),
        ({"OTEL_TRACES_SAMPLER": "parentbased_always_off"}, Sampling(0, True)),
        (
            {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.25"},
            Sampling(0.25, False),
        ),
        ({"OTEL_TRACES_SAMPLER": "parentbased_traceidratio"}, Sampling(1, True)),
    ],
)
def test_samplers(environment: dict[str, str], expected: Sampling) -> None:
    assert read_sampling({**ASKED, **environment}) == expected
    assert read_sampling({"OTEL_TRACES_EXPORTER": "otlp", **environment}) == expected


def test_without_the_extra_the_command_that_installs_it_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(extra, "find_spec", lambda _: None)
    with pytest.raises(Refusal, match=re.escape(install_command("telemetry"))):
        read_sampling(ASKED)
    assert read_sampling({}) is None
