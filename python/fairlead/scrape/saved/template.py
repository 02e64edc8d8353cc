"""Addresses with parameters: `https://example.com/{city}?page={n}`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final
from urllib.parse import quote

from pydantic import Field, StrictStr

from fairlead.errors import InvalidRequest
from fairlead.net.egress import Egress
from fairlead.net.url import split_url
from fairlead.scrape.address import check_url

_PARAMETER: Final = re.compile(r"\{([A-Za-z][A-Za-z0-9_]{0,39})\}")

Template = Annotated[StrictStr, Field(min_length=1, max_length=2048)]
Value = Annotated[StrictStr, Field(max_length=500)]
Parameters = Annotated[
    dict[Annotated[StrictStr, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,39}$")], Value | None],
    Field(max_length=20, description="Names and defaults; null makes a parameter required."),
]


def check_template(url: str, params: Mapping[str, str | None], egress: Egress) -> None:
    """`InvalidRequest` for a template that no values make an address, or whose parameters differ from `params`."""
    check_url(_PARAMETER.sub("x", url), egress)
    parts = split_url(url)
    if _PARAMETER.search(parts.netloc) or _PARAMETER.search(parts.scheme):
        raise InvalidRequest("url may have parameters in its path and query only.", param="url")
    unknown = set(_PARAMETER.findall(url)) ^ set(params)
    if unknown:
        raise InvalidRequest(
            f"params and the names in url differ: {', '.join(sorted(unknown))}.", param="params"
        )


def fill(url: str, params: Mapping[str, str | None], sent: Mapping[str, str], *, place: str) -> str:
    """The address filled with values, escaped so that each stays within its segment or query value. `place` is
    where the caller sends them.
    """
    unknown = sorted(set(sent) - set(params))
    if unknown:
        raise InvalidRequest(
            f"{unknown[0]} is not a parameter of this address: remove it from {place}.",
            param=unknown[0],
        )
    values = {**params, **sent}
    for name, value in values.items():
        if value is None:
            raise InvalidRequest(f"{name} is required: add it to {place}.", param=name)
    filled = _PARAMETER.sub(lambda match: quote(values[match[1]] or "", safe=""), url)
    for segment, written in zip(_segments(filled), _segments(url), strict=True):
        if segment in (".", "..") and segment != written:
            raise InvalidRequest(f"{written} must not become `.` or `..`: send another value.")
    return filled


def _segments(url: str) -> list[str]:
    return split_url(url).path.split("/")
