"""Data and summaries of one page by a model. The page is data between random marks. The answer must fit the
schema, or is text without the targets of links.
"""

from __future__ import annotations

import re
import secrets
from typing import Any, Final

import orjson

from fairlead.calls.model import Model, ModelAnswer
from fairlead.calls.structured_output import InvalidOutput, json_of, request_output
from fairlead.errors import UpstreamInvalid
from fairlead.scrape.model.schema import Schema
from fairlead.scrape.model.untrusted import between_marks, strip_link_targets

PAGE_MAX_CHARS: Final = 200_000


async def extract_by_schema(
    model: Model, page: str, schema: Schema, instructions: str | None
) -> tuple[Any, ModelAnswer]:
    """Data of the page that fits the schema, and the model's answer. An answer that does not fit is corrected once;
    `UpstreamInvalid` after that, `InvalidRequest` for a schema that is refused.
    """
    await schema.check()
    mark = secrets.token_hex(8)
    messages = [
        {
            "role": "system",
            "content": (
                "You extract data from a web page. Answer with one JSON value that fits the JSON "
                f"Schema, and with nothing else. {between_marks(mark)} What the page does not say is "
                "left out, or null where the schema allows."
            ),
        },
        {
            "role": "user",
            "content": (
                f"JSON Schema:\n{orjson.dumps(schema.document).decode()}\n\n"
                + (f"What to look for:\n{instructions}\n\n" if instructions else "")
                + f"<page-{mark}>\n{page[:PAGE_MAX_CHARS]}\n</page-{mark}>"
            ),
        },
    ]

    async def parse(text: str) -> Any:
        try:
            data = json_of(text)
        except ValueError:
            raise InvalidOutput("it is not JSON") from None
        if violations := await schema.violations_of(data):
            raise InvalidOutput(*violations)
        return data

    try:
        output = await request_output(
            model, messages, parse, _correction, answer_max_chars=PAGE_MAX_CHARS
        )
    except InvalidOutput as fault:
        raise UpstreamInvalid(
            f"The model's answer does not fit the schema, even after a retry: {fault.problems[0]}",
            param="schema",
        ) from None
    return output.value, output.answer


def _correction(problems: list[str]) -> str:
    return (
        "That does not fit the schema:\n- "
        + "\n- ".join(problems)
        + "\nAnswer with the corrected JSON value alone."
    )


async def summarize(model: Model, page: str, words: int) -> ModelAnswer:
    """A summary of the page in at most `words` words, without the targets of links."""
    mark = secrets.token_hex(8)
    answer = await model.ask(
        [
            {
                "role": "system",
                "content": (
                    f"You summarize a web page in at most {words} words of plain text. "
                    f"{between_marks(mark)}"
                ),
            },
            {"role": "user", "content": f"<page-{mark}>\n{page[:PAGE_MAX_CHARS]}\n</page-{mark}>"},
        ]
    )
    text = shortened(strip_link_targets(answer.text), words)
    return ModelAnswer(text, answer.tokens_input, answer.tokens_output)


def shortened(text: str, words: int) -> str:
    """The text cut to `words` words, for models that write more than they were asked for."""
    pieces = re.findall(r"\S+\s*", text)
    return text if len(pieces) <= words else "".join(pieces[:words]).rstrip()
