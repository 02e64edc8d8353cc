"""What others wrote never moves the cursor, and JSON says the same in its own escapes."""

from __future__ import annotations

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from fairlead.cli.printable import printable, printable_json, printable_text

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp.exe\u2066\u200b\ufeff\r\x08\x7f"


def is_harmless(text: str, allowed: str) -> bool:
    return all(
        char in allowed or unicodedata.category(char) not in ("Cc", "Cf", "Cs") for char in text
    )


def test_codes_are_shown_as_text() -> None:
    assert printable("\x1b[31m\u202e") == r"\x1b[31m\u202e"
    assert is_harmless(printable(HOSTILE), "")
    assert printable("Zürich 東京 😀") == "Zürich 東京 😀"


@given(st.text())
def test_a_line_holds_no_control_code(text: str) -> None:
    shown = printable(text)
    assert not any(unicodedata.category(char) in ("Cc", "Cs") for char in shown)
    assert "\n" not in shown


@given(st.text())
def test_a_text_keeps_its_lines(text: str) -> None:
    shown = printable_text(text)
    assert shown.count("\n") == text.count("\n")
    assert not any(
        unicodedata.category(char) in ("Cc", "Cs") and char not in "\n\t" for char in shown
    )


@given(st.dictionaries(st.text(), st.text()))
def test_a_document_says_what_it_said(document: dict[str, str]) -> None:
    shown = printable_json(json.dumps(document, ensure_ascii=False))
    assert json.loads(shown) == document
    assert is_harmless(printable_json(json.dumps(HOSTILE, ensure_ascii=False)), "")
