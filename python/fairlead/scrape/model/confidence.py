"""How much of extracted data occurs in the page that it was extracted from.

The confidence is a measured share, not an answer of the model. It counts the fields of the schema, and those
that the model added, whose value occurs in the page. Values that need not occur there are not counted: true and
false, and values of an `enum`, which are judgements about a page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

VALUES_MAX: Final = 500
# Bounds the search in a page that repeats the beginning of a value.
PLACES_MAX: Final = 1000
DEPTH_MAX: Final = 20
_MARKS: Final = re.compile(r"[\\*_`#|>\[\]]")


def confidence_of(data: Any, schema: dict[str, Any], page: str) -> float | None:
    """The confidence between 0 and 1, from the first `VALUES_MAX` values; None where no value can be looked up."""
    text = _plain(page)
    values = list(islice(_values(data, schema, schema, 0), VALUES_MAX))
    if not values:
        return None
    return round(
        sum(value is not None and _stands_in(text, value) for value in values) / len(values), 2
    )


def _values(
    data: Any, schema: Any, root: dict[str, Any], depth: int
) -> Iterator[str | int | float | None]:
    """The values of the data, and None for each field without one."""
    schema = _resolved(schema, root)
    if data is None or data in ("", [], {}):
        yield None
    elif isinstance(data, bool) or "enum" in schema or "const" in schema or depth >= DEPTH_MAX:
        return
    elif isinstance(data, dict):
        declared = schema.get("properties") or {}
        for name in {**declared, **data}:
            yield from _values(data.get(name), declared.get(name), root, depth + 1)
    elif isinstance(data, list):
        for each in data:
            yield from _values(each, schema.get("items"), root, depth + 1)
    else:
        yield data


def _resolved(schema: Any, root: dict[str, Any]) -> dict[str, Any]:
    """The schema that a `$ref` refers to, else the schema itself; {} for what is no object."""
    found: Any = schema
    for _ in range(DEPTH_MAX):
        if not isinstance(found, dict) or not isinstance(reference := found.get("$ref"), str):
            break
        found = root
        for name in reference.removeprefix("#").split("/")[1:]:
            key = name.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _stands_in(text: str, value: str | float) -> bool:
    if isinstance(value, str):
        wanted = _plain(value)
        return bool(wanted) and _is_word(text, wanted)
    return any(_is_word(text, each) for each in dict.fromkeys(_written(value)))


def _written(number: float) -> Iterator[str]:
    """Spellings of a number: separators of thousands, points and commas."""
    yield str(number)
    if abs(number) < 1e15 and number == int(number):
        number = int(number)
    plain = f"{number}"
    if "e" in plain:
        return
    for thousands, point in (
        ("", "."),
        ("", ","),
        (",", "."),
        (".", ","),
        (" ", ","),
        (" ", "."),
        ("'", "."),
    ):
        whole, _, rest = f"{number:,}".partition(".")
        for fraction in {rest, rest + "0" if len(rest) == 1 else rest}:
            yield whole.replace(",", thousands) + (point + fraction if fraction else "")


def _is_word(text: str, wanted: str) -> bool:
    """Whether `wanted` occurs in the text as a whole word or number; `PLACES_MAX` positions are tried."""
    start = -1
    for _ in range(PLACES_MAX):
        start = text.find(wanted, start + 1)
        if start < 0:
            break
        end = start + len(wanted)
        before, after = text[max(0, start - 2) : start], text[end : end + 2]
        if not (_goes_on(before[::-1]) and wanted[0].isalnum()) and not (
            _goes_on(after) and wanted[-1].isalnum()
        ):
            return True
    return False


def _goes_on(following: str) -> bool:
    """Whether these characters continue a word or a number: `4` does in `4.5`, not in `4. Then`."""
    return following[:1].isalnum() or (following[:1] in {".", ","} and following[1:].isdigit())


def _plain(text: str) -> str:
    """The text in lower case, without marks of markdown, with single blanks."""
    return " ".join(_MARKS.sub(" ", text).casefold().split())
