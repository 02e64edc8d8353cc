"""Messages of commands follow the rule of the API's: a capital letter, a full stop."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import fairlead
from fairlead.text.sentence import opened

CLI = Path(fairlead.__file__).parent / "cli"


@pytest.mark.parametrize(
    ("sentence", "shown"),
    [
        ("nothing answers at http://h.", "Nothing answers at http://h."),
        ("There is no key.", "There is no key."),
        ("apiKey is required.", "apiKey is required."),
        ("--model needs a name.", "--model needs a name."),
        ("`x` is unknown.", "`x` is unknown."),
        ("http://h does not answer.", "http://h does not answer."),
        ("models[0].model is too long.", "models[0].model is too long."),
        ("", ""),
    ],
)
def test_a_sentence_begins_with_a_capital_unless_it_begins_with_a_name(
    sentence: str, shown: str
) -> None:
    assert opened(sentence) == shown


def failures() -> Iterator[tuple[str, str]]:
    """Where each message is written, with its constant text."""
    for path in CLI.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("CommandFailed", "Refusal")
                and node.args
            ):
                text = node.args[0]
                parts = text.values if isinstance(text, ast.JoinedStr) else [text]
                constants = [
                    each.value if isinstance(each, ast.Constant) else "{}" for each in parts
                ]
                if constants != ["{}"]:
                    yield f"{path.name}:{node.lineno}", "".join(map(str, constants))


def test_every_message_is_a_sentence() -> None:
    found = dict(failures())
    assert len(found) > 50
    # Behind a colon the gateway's own sentence follows, with its stop.
    loose = {place: text for place, text in found.items() if not text.endswith((".", "?", "{}"))}
    assert loose == {}
