"""Live traffic between two looks at the metrics: the whole gateway, and each provider."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Final

from fairlead.cli.metrics_text import Metrics

_MINUTE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class ProviderTraffic:
    """One provider. Latencies are None where nothing was settled."""

    provider: str
    requests_per_s: float
    errors_per_s: float
    mean_latency_ms: float | None
    p95_latency_ms: float | None
    """The upper end of the histogram's bucket; None also for what is slower than the last one."""
    tokens_per_s: float
    cost_usd_micros_per_minute: float
    unpriced_per_minute: float
    """Requests without a price, whose cost is not known and not in the cost."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """The traffic between two samples, with the busiest providers first."""

    interval_s: float
    requests_per_s: float
    errors_per_s: float
    shed_per_s: float
    in_flight: int
    open_streams: int
    cost_usd_micros_per_minute: float
    unpriced_per_minute: float
    """Requests without a price, whose cost is not known and not in the cost."""
    providers: list[ProviderTraffic]

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "intervalSeconds": round(self.interval_s, 3),
            "requestsPerSecond": round(self.requests_per_s, 3),
            "errorsPerSecond": round(self.errors_per_s, 3),
            "shedPerSecond": round(self.shed_per_s, 3),
            "inFlight": self.in_flight,
            "openStreams": self.open_streams,
            "costUsdMicrosPerMinute": round(self.cost_usd_micros_per_minute),
            "unpricedRequestsPerMinute": round(self.unpriced_per_minute, 3),
            "providers": [
                {
                    "provider": each.provider,
                    "requestsPerSecond": round(each.requests_per_s, 3),
                    "errorsPerSecond": round(each.errors_per_s, 3),
                    "meanLatencyMs": each.mean_latency_ms,
                    "p95LatencyMs": each.p95_latency_ms,
                    "tokensPerSecond": round(each.tokens_per_s, 3),
                    "costUsdMicrosPerMinute": round(each.cost_usd_micros_per_minute),
                    "unpricedRequestsPerMinute": round(each.unpriced_per_minute, 3),
                }
                for each in self.providers
            ],
        }


def traffic_between(
    earlier: Metrics, later: Metrics, interval_s: float, names: Mapping[str, str]
) -> Traffic:
    """The traffic of `interval_s` seconds; `names` are those of providers by their ids."""
    grown = later.since(earlier)
    # The query itself is a management request, and is in progress while it is counted.
    in_flight = max(int(later.total("fairlead_requests_in_flight")) - 1, 0)
    providers = sorted(
        {
            labels["provider"]
            for labels, _ in later.samples("fairlead_provider_requests_total")
            if "provider" in labels
        }
    )
    rows = [_provider_traffic(grown, each, interval_s, names) for each in providers]
    rows.sort(key=lambda row: -row.requests_per_s)
    errors = sum(
        value
        for labels, value in grown.samples("fairlead_requests_total")
        if labels.get("outcome") != "completed"
    )
    return Traffic(
        interval_s=interval_s,
        requests_per_s=grown.total("fairlead_requests_total") / interval_s,
        errors_per_s=errors / interval_s,
        shed_per_s=grown.total("fairlead_shed_total") / interval_s,
        in_flight=in_flight,
        open_streams=int(later.total("fairlead_open_streams")),
        cost_usd_micros_per_minute=grown.total("fairlead_cost_usd_micros_total")
        * _MINUTE_S
        / interval_s,
        unpriced_per_minute=grown.total("fairlead_unpriced_requests_total")
        * _MINUTE_S
        / interval_s,
        providers=rows,
    )


def _provider_traffic(
    grown: Metrics, provider: str, interval_s: float, names: Mapping[str, str]
) -> ProviderTraffic:
    outcomes: dict[str, float] = defaultdict(float)
    for labels, value in grown.samples("fairlead_provider_requests_total"):
        if labels.get("provider") == provider:
            outcomes[labels.get("outcome", "")] += value
    requests = sum(outcomes.values())
    count = _sum_of(grown, "fairlead_provider_duration_seconds_count", provider)
    seconds = _sum_of(grown, "fairlead_provider_duration_seconds_sum", provider)
    return ProviderTraffic(
        provider=names.get(provider, provider),
        requests_per_s=requests / interval_s,
        errors_per_s=(requests - outcomes["completed"]) / interval_s,
        mean_latency_ms=round(seconds / count * 1000, 3) if count else None,
        p95_latency_ms=_percentile_ms(grown, provider, 0.95),
        tokens_per_s=_sum_of(grown, "fairlead_tokens_total", provider, ("input", "output"))
        / interval_s,
        cost_usd_micros_per_minute=_sum_of(grown, "fairlead_cost_usd_micros_total", provider)
        * _MINUTE_S
        / interval_s,
        unpriced_per_minute=_sum_of(grown, "fairlead_unpriced_requests_total", provider)
        * _MINUTE_S
        / interval_s,
    )


def _sum_of(grown: Metrics, name: str, provider: str, kinds: tuple[str, ...] = ()) -> float:
    return sum(
        value
        for labels, value in grown.samples(name)
        if labels.get("provider") == provider and (not kinds or labels.get("kind") in kinds)
    )


def _percentile_ms(grown: Metrics, provider: str, share: float) -> float | None:
    """The upper bound of the bucket that holds this share, or None, or it has no bound."""
    buckets = sorted(
        (float(labels.get("le", "+Inf")), value)
        for labels, value in grown.samples("fairlead_provider_duration_seconds_bucket")
        if labels.get("provider") == provider
    )
    if not buckets or not buckets[-1][1]:
        return None
    wanted = buckets[-1][1] * share
    bound = next(le for le, count in buckets if count >= wanted)
    return None if bound == inf else bound * 1000
