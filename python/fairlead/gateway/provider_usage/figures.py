"""Figures from the answers of a provider's usage route, at the positions in its section of the catalogue.

A figure that is missing, or not a number, is unknown: no figure is guessed, and none is summed up from a part.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from fairlead.gateway.providers.catalogue import UsageFigureSection
from fairlead.records.provider_usage import MICROS, UsageFigure

ELEMENTS_MAX: Final = 20
UNIT_MAX_CHARS: Final = 20
# A larger amount is not plausible.
AMOUNT_MAX: Final = Decimal(10) ** 12


def read_figures(
    sections: Sequence[UsageFigureSection], pages: Sequence[Any], since_ms: int | None
) -> list[UsageFigure]:
    """The figures that the pages of an answer tell, without those of which nothing is known."""
    found: list[UsageFigure] = []
    for section in sections:
        for documents in _documents(section, pages):
            figure = _figure(section, documents, since_ms)
            if figure is not None:
                found.append(figure)
    return found


def text_at(document: Any, pointer: str) -> str | None:
    """The text at a place, or None."""
    found = _values(document, _parts(pointer)) or [None]
    return found[0] if isinstance(found[0], str) and found[0] else None


def _documents(section: UsageFigureSection, pages: Sequence[Any]) -> list[Sequence[Any]]:
    if section.each is None:
        return [pages]
    lists = [_values(page, _parts(section.each)) for page in pages]
    elements = [each for found in lists for listed in found or () for each in _listed(listed)]
    return [[element] for element in elements[:ELEMENTS_MAX]]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _figure(
    section: UsageFigureSection, documents: Sequence[Any], since_ms: int | None
) -> UsageFigure | None:
    unit = section.unit
    if unit is None and section.unit_at is not None:
        unit = text_at(documents[0], section.unit_at)
    if unit is None or len(unit) > UNIT_MAX_CHARS or not unit.isprintable():
        return None
    used, limit, remaining = (
        None if place is None else _amount(documents, place, section.per_unit)
        for place in (section.used, section.limit, section.remaining)
    )
    if used is None and remaining is None:
        return None
    if remaining is None and used is not None and limit is not None:
        remaining = limit - used
    return UsageFigure(section.name, unit, used, limit, remaining, since_ms)


def _amount(documents: Sequence[Any], pointer: str, per_unit: int) -> int | None:
    """The sum of the values at a place, in millionths; None where one of them is missing or no number."""
    total = Decimal(0)
    for document in documents:
        values = _values(document, _parts(pointer))
        if values is None:
            return None
        for value in values:
            number = _number(value)
            if number is None:
                return None
            total += number
    return round(total * MICROS / per_unit)


def _number(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() and abs(number) <= AMOUNT_MAX else None


def _parts(pointer: str) -> list[str]:
    return pointer.split("/")[1:]


def _values(document: Any, parts: Sequence[str]) -> list[Any] | None:
    """The values at a place, or at the places that `*` makes of it; None where the way ends before."""
    values = [document]
    for part in parts:
        further: list[Any] = []
        for each in values:
            if part == "*" and isinstance(each, list):
                further.extend(each)
            elif part != "*" and isinstance(each, dict) and part in each:
                further.append(each[part])
            else:
                return None
        values = further
    return values
