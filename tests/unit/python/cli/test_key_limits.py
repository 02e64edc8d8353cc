"""Limits as options: amounts for a time become the fields of the API."""

from __future__ import annotations

import pytest

from fairlead.cli.failure import CommandFailed
from fairlead.cli.key_limits import limit_fields, token_limit, with_limits_in_force
from fairlead.cli.money import exact_dollars


def test_options_become_fields() -> None:
    assert limit_fields(["openai/*"], ["20/month", "$2.50/day"], 60, ["5000/day"], "UTC") == {
        "modelAccessMode": "restricted",
        "allowedModels": ["openai/*"],
        "monthlyUsageLimitUsd": 20.0,
        "dailyUsageLimitUsd": 2.5,
        "usageLimitEnabled": True,
        "rateLimits": [{"limit": 60, "window": 60}, {"limit": 5000, "window": 86400}],
        "usageLimitTz": "UTC",
    }
    assert limit_fields(None, None, None, None, None) == {}
    assert token_limit("--tokens", "2M/month") == {
        "tokenLimit": 2_000_000,
        "resetInterval": "monthly",
    }


@pytest.mark.parametrize(
    "text", ["20", "20/", "/month", "20/year", "-1/day", "1e9/day", "20 / day", ""]
)
def test_an_amount_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(CommandFailed, match="--budget must be a number, a slash and a period"):
        limit_fields(None, [text], None, None, None)


def test_requests_and_tokens_are_whole() -> None:
    for text in ("0.5/day", "0/day"):
        with pytest.raises(CommandFailed, match="positive whole number"):
            limit_fields(None, None, None, [text], None)
        with pytest.raises(CommandFailed, match="positive whole number"):
            token_limit("--tokens", text)


def test_an_amount_takes_effect_unless_the_fields_say_otherwise() -> None:
    assert with_limits_in_force({"dailyUsageLimitUsd": 5}) == {
        "dailyUsageLimitUsd": 5,
        "usageLimitEnabled": True,
    }
    off = {"dailyUsageLimitUsd": 5, "usageLimitEnabled": False}
    assert with_limits_in_force(off) == off
    for fields in ({"dailyUsageLimitUsd": None}, {"maxSessions": 4}):
        assert with_limits_in_force(fields) == fields


def test_a_cost_is_shown_without_zeros_behind_it() -> None:
    assert exact_dollars("0.0000000000") == "$0.00"
    assert exact_dollars("0.0000085500") == "$0.00000855"
    assert exact_dollars("12.5000000000") == "$12.50"
