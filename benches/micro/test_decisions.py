"""What choosing targets and looking for an idempotent twin cost, without Python and without a network."""

from __future__ import annotations

from typing import Any

from benches.micro import example

# 50 combos of 20 targets, 1,000 keys; `auto` over 2,000 candidates.
DECISION_MOST_US = 20.0
IDEMPOTENCY_MOST_US = 2.0
# A call for which nobody asks for compression: a thousandth of what the relay takes for it.
COMPRESSION_OFF_MOST_US = 0.03


def test_decisions(benchmark: Any, capsys: Any) -> None:
    """Each figure is the least of seven rounds."""
    figures = example.run("decisions", benchmark, capsys)
    decisions = {name: us for name, us in figures.items() if name.startswith("decision ")}
    assert len(decisions) > 15
    assert sum(name.endswith("over 2000 candidates") for name in decisions) == 4
    assert max(decisions.values()) <= DECISION_MOST_US, decisions
    (check,) = (us for name, us in figures.items() if name.startswith("idempotency"))
    assert check <= IDEMPOTENCY_MOST_US
    (off,) = (us for name, us in figures.items() if name.endswith("compression off"))
    assert off <= COMPRESSION_OFF_MOST_US
