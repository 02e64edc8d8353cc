"""Asking a model where the fields of a page's records stand. It sees the page in little, as data; what it answers must
be selectors for exactly these fields, and is tried on the page before anybody uses it.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import orjson
from pydantic import ValidationError

from fairlead.errors import InvalidRequest, UpstreamInvalid
from fairlead.invalid import invalid_request
from fairlead.model import Model, ModelAnswer
from fairlead.scrape.css.schema import CssSchema, FieldAsk, misfits
from fairlead.scrape.model import between_marks, json_of
from fairlead.scrape.page.css import is_filled

ROUNDS: Final = 2
ANSWER_MAX_CHARS: Final = 50_000
WRONGS_TOLD: Final = 10

_FORM: Final = """{"baseSelector": "<selector of each record's element>", "fields": [{"name": "...", "type": "...",
"selector": "<selector within the record, empty for its own element>",
"attribute": "<name, where not the text is meant>",
"fields": [<of nested and nested_list: the same, within the element found>]}]}"""


@dataclass(frozen=True, slots=True)
class Tried:
    """Selectors and what they find in the page: the records, and the share of their fields that is filled."""

    schema: CssSchema
    records: list[dict[str, Any]]
    ratio: float

    @property
    def rank(self) -> tuple[float, int]:
        """Which of two is better."""
        return self.ratio, len(self.records)


async def find_selectors(
    model: Model,
    outline: str,
    fields: list[FieldAsk],
    attempt: Callable[[CssSchema], Awaitable[Tried]],
    least: float,
) -> tuple[Tried, ModelAnswer]:
    """The best of the model's answers. One round more is given to an answer that is no set of selectors, or finds too
    little: `least` is the share of fields that is enough. `UpstreamInvalid` where no answer was usable.
    """
    messages = _question(outline, fields)
    best: Tried | None = None
    wrongs: list[str] = []
    tokens_in = tokens_out = 0
    for _ in range(ROUNDS):
        asked = await model.ask(messages)
        tokens_in += asked.tokens_input
        tokens_out += asked.tokens_output
        try:
            tried = await attempt(_read(asked.text, fields))
        except InvalidRequest as fault:
            wrongs = [fault.message]
        else:
            best = tried if best is None or tried.rank > best.rank else best
            if tried.ratio >= least:
                break
            wrongs = _too_little(tried)
        messages += [
            {"role": "assistant", "content": asked.text[:ANSWER_MAX_CHARS]},
            {
                "role": "user",
                "content": "That does not do:\n- "
                + "\n- ".join(wrongs[:WRONGS_TOLD])
                + "\nAnswer with the corrected JSON object alone.",
            },
        ]
    if best is None:
        raise UpstreamInvalid(
            f"The model found no usable selectors, also not when asked again: {wrongs[0]}"
        )
    return best, ModelAnswer("", tokens_in, tokens_out)


def _question(outline: str, fields: list[FieldAsk]) -> list[dict[str, str]]:
    mark = secrets.token_hex(8)
    asked = [field.model_dump(mode="json", exclude_none=True) for field in fields]
    return [
        {
            "role": "system",
            "content": (
                "You write CSS selectors that find the records of a web page and their fields. Answer with "
                f"one JSON object of this form, and with nothing else:\n{_FORM}\nEach field has the name "
                "and the type that it was asked for with. Selectors are plain CSS: no XPath, no "
                "pseudo-elements, no combinator at the start. Prefer classes, ids and attributes that "
                f"will last to positions. {between_marks(mark)}"
            ),
        },
        {
            "role": "user",
            "content": (
                f"Fields of each record:\n{orjson.dumps(asked).decode()}\n\n"
                f"<page-{mark}>\n{outline}\n</page-{mark}>"
            ),
        },
    ]


def _read(text: str, fields: list[FieldAsk]) -> CssSchema:
    """The selectors of an answer. `InvalidRequest` says what is wrong with them."""
    try:
        schema = CssSchema.model_validate(json_of(text))
    except ValidationError as fault:
        raise invalid_request(fault.errors(include_url=False)) from None
    except ValueError:
        raise InvalidRequest("It is not JSON.") from None
    if wrongs := misfits(fields, schema.fields):
        raise InvalidRequest(f"{wrongs[0]}.")
    return schema


def _too_little(tried: Tried) -> list[str]:
    if not tried.records:
        return [f"baseSelector {tried.schema.base_selector!r} finds nothing in the page."]
    empty = [
        f"{field.name} ({field.selector!r}) is empty in all {len(tried.records)} records."
        for field in tried.schema.fields
        if not any(is_filled(record[field.name]) for record in tried.records)
    ]
    return empty or [f"only {tried.ratio:.0%} of the fields are filled."]
