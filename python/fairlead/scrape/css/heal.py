"""Requests the positions of the fields of a page's records from a model. The model gets an outline of the page, as
data. Its answer must be selectors for exactly these fields, and is tried on the page before it is used.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import orjson
from pydantic import ValidationError

from fairlead.calls.model import Model, ModelAnswer
from fairlead.calls.structured_output import InvalidOutput, json_of, request_output
from fairlead.errors import InvalidRequest, UpstreamInvalid
from fairlead.scrape.css.schema import CssSchema, RequestedField, schema_mismatches
from fairlead.scrape.model.untrusted import between_marks
from fairlead.scrape.page.css import is_filled
from fairlead.text.invalid import invalid_request

ANSWER_MAX_CHARS: Final = 50_000
PROBLEMS_SHOWN: Final = 10

_FORM: Final = """{"baseSelector": "<selector of each record's element>", "fields": [{"name": "...", "type": "...",
"selector": "<selector within the record, empty for its own element>",
"attribute": "<name, where not the text is meant>",
"fields": [<of nested and nested_list: the same, within the element found>]}]}"""


@dataclass(frozen=True, slots=True)
class SelectorTrial:
    """Selectors and what they find in the page: the records, and the share of their fields that is filled."""

    schema: CssSchema
    records: list[dict[str, Any]]
    ratio: float

    @property
    def rank(self) -> tuple[float, int]:
        """The share of filled fields, then the number of records; the greater is the better."""
        return self.ratio, len(self.records)


async def find_selectors(
    model: Model,
    outline: str,
    fields: list[RequestedField],
    attempt: Callable[[CssSchema], Awaitable[SelectorTrial]],
    least: float,
) -> tuple[SelectorTrial, ModelAnswer]:
    """The best of the model's answers. An answer that is no set of selectors, or fills less than the share `least`
    of the fields, is corrected once. `UpstreamInvalid` where no answer was usable.
    """
    trials: list[SelectorTrial] = []

    async def parse(text: str) -> None:
        try:
            trial = await attempt(_read(text, fields))
        except InvalidRequest as fault:
            raise InvalidOutput(fault.message) from None
        trials.append(trial)
        if trial.ratio < least:
            raise InvalidOutput(*_missing_fields(trial))

    try:
        output = await request_output(
            model,
            _question(outline, fields),
            parse,
            _correction,
            answer_max_chars=ANSWER_MAX_CHARS,
        )
        answer = output.answer
    except InvalidOutput as fault:
        if not trials:
            raise UpstreamInvalid(
                f"The model found no usable selectors, even after a retry: {fault.problems[0]}"
            ) from None
        answer = fault.answer
    return max(trials, key=lambda trial: trial.rank), answer


def _correction(problems: list[str]) -> str:
    return (
        "That is not acceptable:\n- "
        + "\n- ".join(problems[:PROBLEMS_SHOWN])
        + "\nAnswer with the corrected JSON object alone."
    )


def _question(outline: str, fields: list[RequestedField]) -> list[dict[str, str]]:
    mark = secrets.token_hex(8)
    wanted = [field.model_dump(mode="json", exclude_none=True) for field in fields]
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
                f"Fields of each record:\n{orjson.dumps(wanted).decode()}\n\n"
                f"<page-{mark}>\n{outline}\n</page-{mark}>"
            ),
        },
    ]


def _read(text: str, fields: list[RequestedField]) -> CssSchema:
    """The selectors of an answer. `InvalidRequest` says what is wrong with them."""
    try:
        schema = CssSchema.model_validate(json_of(text))
    except ValidationError as fault:
        raise invalid_request(fault.errors(include_url=False)) from None
    except ValueError:
        raise InvalidRequest("It is not JSON.") from None
    if mismatches := schema_mismatches(fields, schema.fields):
        raise InvalidRequest(f"{mismatches[0]}.")
    return schema


def _missing_fields(trial: SelectorTrial) -> list[str]:
    if not trial.records:
        return [f"baseSelector {trial.schema.base_selector!r} finds nothing in the page."]
    empty = [
        f"{field.name} ({field.selector!r}) is empty in all {len(trial.records)} records."
        for field in trial.schema.fields
        if not any(is_filled(record[field.name]) for record in trial.records)
    ]
    return empty or [f"only {trial.ratio:.0%} of the fields are filled."]
