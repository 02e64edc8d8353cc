"""Records by selectors: what each type of field gives, and what is told of selectors that are none."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from selectolax.lexbor import LexborHTMLParser

from fairlead.scrape.css.schema import CssSchema, ExtractAutoRequest
from fairlead.scrape.page.css import fill_ratio, invalid_selectors, number_of, records_of
from fairlead.scrape.page.extract import select
from fairlead.scrape.page.outline import OUTLINE_MAX_CHARS, outline_of
from tests.support.site import market

BASE = "http://market.example/market/york"


def plan(*fields: dict[str, Any], base: str = "li.good") -> dict[str, Any]:
    return CssSchema.model_validate({"baseSelector": base, "fields": list(fields)}).plan


def found(*fields: dict[str, Any], html: str | None = None, base: str = "li.good") -> Any:
    told = select(BASE, market("york", "old") if html is None else html, plan(*fields, base=base))
    assert told["problems"] == []
    return told["records"]


def test_each_type_of_field_gives_what_it_says() -> None:
    first, second, third = found(
        {"name": "name", "selector": ".name"},
        {"name": "link", "selector": "a", "type": "attribute", "attribute": "href"},
        {"name": "id", "type": "attribute", "attribute": "data-id"},
        {"name": "price", "selector": ".price", "type": "number"},
        {"name": "bold", "selector": "b", "type": "html"},
        {"name": "tags", "selector": ".tags li", "type": "list"},
        {
            "name": "seller",
            "selector": ".seller",
            "type": "nested",
            "fields": [{"name": "who", "selector": "i"}],
        },
        {
            "name": "labels",
            "selector": ".tags li",
            "type": "nested_list",
            "fields": [{"name": "label"}],
        },
    )
    assert first == {
        "name": "Lamp of york",
        "link": "http://market.example/goods/1",
        "id": "1",
        "price": 1234.5,
        "bold": "<b>Lamp</b>",
        "tags": ["brass", "old"],
        "seller": {"who": "Ann"},
        "labels": [{"label": "brass"}, {"label": "old"}],
    }
    assert (second["price"], second["tags"]) == (45, ["oak"])
    assert (third["tags"], third["seller"], third["labels"]) == ([], None, [])


def test_words_do_not_run_into_each_other_and_scripts_are_no_text() -> None:
    html = "<div class=x><h2>On</h2><p>har<b>bours</b></p><script>no()</script><br>again</div>"
    assert found({"name": "text"}, html=html, base=".x") == [{"text": "On harbours again"}]


def test_a_field_is_what_is_below_its_record_before_the_record_itself() -> None:
    html = "<div class=a>outer<div class=a>inner</div></div>"
    records = found({"name": "text", "selector": ".a"}, html=html, base=".a")
    assert [record["text"] for record in records] == ["inner", "inner"]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,234.50 EUR", 1234.5),
        ("1.234,50", 1234.5),
        ("1 234", 1234),
        ("1,234", 1234),
        ("1.234", 1.234),
        ("£51.77", 51.77),
        ("-5", -5),
        ("A-5", 5),
        ("2024 100", 2024),
        ("1.234.567", 1234567),
        ("none", None),
        ("9" * 400, float("9" * 40)),
    ],
)
def test_numbers_are_read_as_people_mean_them(text: str, number: float | None) -> None:
    assert number_of(text) == number


def test_health_is_the_share_of_fields_that_have_something_in_them() -> None:
    assert fill_ratio([]) == 0.0
    assert fill_ratio([{"a": 0, "b": None}, {"a": "x", "b": []}]) == 0.5


def test_what_is_no_selector_is_named() -> None:
    wrongs = invalid_selectors(
        plan(
            {"name": "a", "selector": "b["},
            {"name": "c", "type": "nested", "fields": [{"name": "d", "selector": "p::text"}]},
            base="> li",
        )
    )
    places = [wrong.split(" ")[0] for wrong in wrongs]
    assert places == ["baseSelector", "fields[0].selector", "fields[1].fields[0].selector"]


def test_one_text_in_a_thousand_records_is_bounded() -> None:
    html = "<p>" + "<b>" * 2 + "x" * 15_000 + "</b>" * 2
    tree = LexborHTMLParser(html * 600)
    records = records_of(tree, BASE, plan({"name": "all", "selector": "b"}, base="p"))
    assert 0 < len(records) < 600


def test_the_outline_has_what_selectors_go_by_and_is_short() -> None:
    outline = outline_of(LexborHTMLParser(market("york", "new")))
    assert '<li class="card" data-id="1"><a class="title" href="/goods/1">' in outline
    assert "ignored()" not in outline
    many = "".join(f"<div class=row><p>{'x' * 500}</p></div>" for _ in range(1000))
    short = outline_of(LexborHTMLParser(many))
    assert short.count("<div") == 3
    assert "more like this" in short
    mixed = "".join(f"<div class=row{n}><p>{n}</p></div>" for n in range(20_000))
    assert len(outline_of(LexborHTMLParser(mixed))) <= OUTLINE_MAX_CHARS


def test_a_page_of_scripts_alone_is_blank() -> None:
    told = select(BASE, "<script>make()</script><div></div>", None)
    assert told["is_blank"] is True


NESTED = {"name": "a", "type": "nested", "fields": [{"name": "b"}]}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"fields": []}, "at least 1"),
        ({"fields": [{"name": "a"}, {"name": "a"}]}, "each name once"),
        ({"fields": [{"name": "a", "fields": [{"name": "b"}]}]}, "have none"),
        ({"fields": [{"name": "a", "type": "nested"}]}, "have fields"),
        ({"fields": [{"name": "a", "type": "date"}]}, "nested_list"),
        (
            {"fields": [{**NESTED, "fields": [{**NESTED, "fields": [{**NESTED}]}]}]},
            "more than 3 deep",
        ),
        (
            {
                "fields": [{"name": "a"}],
                "cssSchema": {"baseSelector": "p", "fields": [{"name": "b"}]},
            },
            "no field a",
        ),
        (
            {
                "fields": [{"name": "a"}],
                "cssSchema": {"baseSelector": "p", "fields": [{"name": "a", "type": "list"}]},
            },
            "of type text",
        ),
        (
            {
                "fields": [{"name": "a", "type": "attribute"}],
                "cssSchema": {"baseSelector": "p", "fields": [{"name": "a", "type": "attribute"}]},
            },
            "name the attribute",
        ),
    ],
)
def test_what_cannot_be_asked_for_is_refused(body: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        ExtractAutoRequest.model_validate({"url": "http://x.example/", **body})
