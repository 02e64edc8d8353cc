"""Figures out of providers' answers: what is told is taken as it is, and nothing is made up."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.gateway.provider_usage.figures import read_figures
from fairlead.gateway.providers.catalogue import UsageFigureSection, catalogue
from fairlead.records.provider_usage import UsageFigure


def figures(provider: str, *answers: Any, since_ms: int | None = None) -> list[UsageFigure]:
    """What is read of documented answers, one for each address of the provider's section."""
    usage = catalogue()[provider].usage
    assert usage is not None
    found = []
    for read, answer in zip(usage.reads, answers, strict=True):
        pages = answer if isinstance(answer, list) else [answer]
        found += read_figures(read.figures, pages, since_ms)
    return found


def bucket(*amounts: Any) -> dict[str, Any]:
    return {"results": [{"amount": amount} for amount in amounts]}


def test_documented_answers_are_read() -> None:
    key = {"data": {"usage": 25.5, "limit": 100, "limit_remaining": 74.5, "usage_daily": 1.25}}
    credits_ = {"data": {"total_credits": 100.5, "total_usage": 25.75}}
    assert figures("openrouter", key, credits_) == [
        UsageFigure("key", "USD", 25_500_000, 100_000_000, 74_500_000),
        UsageFigure("key today", "USD", 1_250_000),
        UsageFigure("credits", "USD", 25_750_000, 100_500_000, 74_750_000),
    ]
    balances = [
        {"currency": "CNY", "total_balance": "110.00", "granted_balance": "10.00"},
        {"currency": "USD", "total_balance": "0.10"},
    ]
    assert figures("deepseek", {"is_available": True, "balance_infos": balances}) == [
        UsageFigure("balance", "CNY", remaining_micros=110_000_000),
        UsageFigure("balance", "USD", remaining_micros=100_000),
    ]
    dollars = {"value": 0.06, "currency": "usd"}
    pages = [{"data": [bucket(dollars), bucket(dollars, dollars), bucket()]}, {"data": []}]
    assert figures("openai", pages, since_ms=7) == [
        UsageFigure("costs of the month", "USD", 180_000, since_ms=7)
    ]
    assert figures("anthropic", {"data": [bucket("123.78912"), bucket("1")]}) == [
        UsageFigure("costs of the month", "USD", 1_247_891)
    ]
    told = {"availableBalance": "1000000", "creditLimit": "200000"}
    assert figures("novita", told) == [UsageFigure("balance", "USD", remaining_micros=100_000_000)]
    told = {"balances": {"diem": 90.5, "usd": 25}, "diemEpochAllocation": 100}
    found = figures("venice", told)
    assert [(each.unit, each.remaining_percent) for each in found] == [
        ("USD", None),
        ("DIEM", 90.5),
    ]
    assert figures("poe", {"current_point_balance": 1500})[0].remaining_micros == 1_500_000_000
    assert figures("vercel", {"balance": "95.50", "total_used": "4.50"}) == [
        UsageFigure("credits", "USD", 4_500_000, None, 95_500_000)
    ]
    assert (
        figures("moonshot", {"data": {"available_balance": -3.5}})[0].remaining_micros == -3_500_000
    )


def test_a_key_without_a_limit_has_no_percent() -> None:
    key = {"data": {"usage": 25.5, "limit": None, "limit_remaining": None}}
    (figure,) = figures("openrouter", key, {})
    assert figure == UsageFigure("key", "USD", 25_500_000)
    assert figure.remaining_percent is None


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        "text",
        {},
        {"data": {}},
        {"data": [{"results": [{"amount": {}}]}]},
        # A sum over a part would be a wrong figure.
        {"data": [{"results": [{"amount": {"value": 1}}]}, {"results": None}]},
        {"data": [{"results": [{"amount": {"value": 1}}, {"amount": {"value": "x"}}]}]},
        {"data": [{"results": [{"amount": {"value": True}}]}]},
        {"data": [{"results": [{"amount": {"value": "NaN"}}]}]},
        {"data": [{"results": [{"amount": {"value": "1e400"}}]}]},
    ],
)
def test_what_cannot_be_read_is_unknown(answer: Any) -> None:
    assert figures("openai", [answer]) == []


@pytest.mark.parametrize("unit", [None, 7, "", "U\nSD", "x" * 21])
def test_a_unit_is_short_text(unit: Any) -> None:
    assert figures("deepseek", {"balance_infos": [{"currency": unit, "total_balance": 1}]}) == []


def test_a_section_says_where_a_figure_stands() -> None:
    for wrong in (
        {"name": "a", "used": "/a"},
        {"name": "a", "unit": "USD", "unit_at": "/u", "used": "/a"},
        {"name": "a", "unit": "USD", "limit": "/a"},
        {"name": "a", "unit": "USD", "used": "a"},
    ):
        with pytest.raises(ValueError, match=r".+"):
            UsageFigureSection.model_validate(wrong)


def test_sections_name_their_documentation() -> None:
    sections = [each.usage for each in catalogue().values() if each.usage is not None]
    assert len(sections) == 9
    assert all(section.source.startswith("https://") for section in sections)
