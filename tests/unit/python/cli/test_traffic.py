"""Figures of `fairlead top` from two texts of metrics."""

from __future__ import annotations

import math

import pytest

from fairlead.cli.metrics_text import parse_metrics
from fairlead.cli.traffic import traffic_between

BEFORE = """\
# HELP fairlead_requests_total Settled.
fairlead_requests_total{endpoint="chat",outcome="completed"} 10
fairlead_provider_requests_total{provider="p-1",outcome="completed"} 10
fairlead_provider_duration_seconds_bucket{provider="p-1",le="0.1"} 10
fairlead_provider_duration_seconds_bucket{provider="p-1",le="+Inf"} 10
fairlead_provider_duration_seconds_sum{provider="p-1"} 0.5
fairlead_provider_duration_seconds_count{provider="p-1"} 10
fairlead_cost_usd_micros_total{provider="p-1"} 100
fairlead_requests_in_flight 1
"""
AFTER = """\
fairlead_requests_total{endpoint="chat",outcome="completed"} 16
fairlead_requests_total{endpoint="chat",outcome="upstream_failed"} 2
fairlead_provider_requests_total{provider="p-1",outcome="completed"} 16
fairlead_provider_requests_total{provider="p-1",outcome="upstream_failed"} 2
fairlead_provider_duration_seconds_bucket{provider="p-1",le="0.1"} 14
fairlead_provider_duration_seconds_bucket{provider="p-1",le="0.5"} 18
fairlead_provider_duration_seconds_bucket{provider="p-1",le="+Inf"} 18
fairlead_provider_duration_seconds_sum{provider="p-1"} 2.1
fairlead_provider_duration_seconds_count{provider="p-1"} 18
fairlead_cost_usd_micros_total{provider="p-1"} 500
fairlead_unpriced_requests_total{provider="p-1"} 3
fairlead_tokens_total{provider="p-1",kind="input"} 30
fairlead_tokens_total{provider="p-1",kind="cached"} 20
fairlead_tokens_total{provider="p-1",kind="output"} 10
fairlead_requests_in_flight 4
fairlead_open_streams 2
"""


def test_rates_are_differences_over_the_interval() -> None:
    look = traffic_between(parse_metrics(BEFORE), parse_metrics(AFTER), 2.0, {"p-1": "demo"})
    assert (look.requests_per_s, look.errors_per_s) == (4.0, 1.0)
    assert (look.in_flight, look.open_streams) == (3, 2)
    assert look.cost_usd_micros_per_minute == 400 * 30
    assert look.unpriced_per_minute == 3 * 30
    assert look.document()["unpricedRequestsPerMinute"] == 90
    assert look.document()["providers"][0]["unpricedRequestsPerMinute"] == 90
    (provider,) = look.providers
    assert provider.provider == "demo"
    assert (provider.requests_per_s, provider.errors_per_s) == (4.0, 1.0)
    assert provider.mean_latency_ms == 200.0
    assert provider.p95_latency_ms == 500.0
    assert provider.tokens_per_s == 20.0, "cached tokens are a part of the input"


def test_counters_that_began_anew_count_from_zero() -> None:
    look = traffic_between(parse_metrics(AFTER), parse_metrics(BEFORE), 1.0, {})
    assert look.requests_per_s == 10.0
    assert look.providers[0].provider == "p-1"


def test_a_quiet_provider_has_no_latency() -> None:
    metrics = parse_metrics(AFTER)
    (provider,) = traffic_between(metrics, metrics, 1.0, {}).providers
    assert (provider.requests_per_s, provider.mean_latency_ms, provider.p95_latency_ms) == (
        0.0,
        None,
        None,
    )


@pytest.mark.parametrize(
    ("line", "labels", "value"),
    [
        (r'a_total{x="q\"u\\o\nte",y="}, "} 3', {"x": 'q"u\\o\nte', "y": "}, "}, 3.0),
        ("a_total 4 1700000000000", {}, 4.0),
        ("a_total +Inf", {}, math.inf),
    ],
)
def test_samples_are_read_as_the_format_has_them(
    line: str, labels: dict[str, str], value: float
) -> None:
    assert list(parse_metrics(line).samples("a_total")) == [(labels, value)]


def test_what_is_no_sample_is_left_out() -> None:
    assert not parse_metrics("# TYPE a counter\n\nnonsense\na{ 1\na_total x\n").families
