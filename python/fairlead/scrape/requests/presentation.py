"""Options of the request for a page, and of the screen that shows it: headers, cookies, languages, sizes."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator, Field, StrictBool, StrictInt, StrictStr
from pydantic_core import PydanticCustomError

from fairlead.net.hop_headers import HOP_HEADERS
from fairlead.scrape.requests.fields import RequestBody, Selector

ENTRIES_MAX: Final = 20
ENTRIES_MAX_BYTES: Final = 8 * 1024
TAGS_MAX: Final = 20

_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_VALUE: Final = re.compile(r"[\t\x20-\x7e]*")
_COOKIE: Final = re.compile(r"[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*")


def _check_headers(headers: dict[str, str]) -> dict[str, str]:
    _check_size(headers, "headers")
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            _refuse("headers has a name with characters that names of headers do not have.")
        if name.lower() in HOP_HEADERS:
            _refuse(f"headers must not have {name.lower()}.")
        if not _VALUE.fullmatch(value):
            _refuse(f"The header {name} has characters that headers do not have.")
    if len({name.lower() for name in headers}) < len(headers):
        _refuse("headers has a name twice.")
    return headers


def _check_cookies(cookies: dict[str, str]) -> dict[str, str]:
    _check_size(cookies, "cookies")
    for name, value in cookies.items():
        if not _TOKEN.fullmatch(name):
            _refuse("cookies has a name with characters that names of cookies do not have.")
        if not _COOKIE.fullmatch(value):
            _refuse(f"The cookie {name} has characters that cookies do not have.")
    return cookies


def _check_size(entries: dict[str, str], what: str) -> None:
    if len(entries) > ENTRIES_MAX:
        _refuse(f"{what} has more than {ENTRIES_MAX} entries.")
    size = sum(len(name) + len(value.encode("utf-8", "replace")) for name, value in entries.items())
    if size > ENTRIES_MAX_BYTES:
        _refuse(f"{what} is larger than {ENTRIES_MAX_BYTES} bytes.")


def _refuse(sentence: str) -> None:
    raise PydanticCustomError("no_valid_fields", "{sentence}", {"sentence": sentence})


Headers = Annotated[
    dict[StrictStr, StrictStr],
    AfterValidator(_check_headers),
    Field(
        description="Sent to the origin of the page and to no other. At most 20, 8 KiB; none of the connection."
    ),
]
Cookies = Annotated[
    dict[StrictStr, StrictStr],
    AfterValidator(_check_cookies),
    Field(
        description="Names and values. Sent to the origin of the page and to no other. At most 20, 8 KiB."
    ),
]
Tags = Annotated[list[Selector], Field(max_length=TAGS_MAX)]
TimeoutMs = Annotated[StrictInt, Field(ge=1000, le=300_000)]


class Viewport(RequestBody):
    """The size of a tab in pixels."""

    width: Annotated[StrictInt, Field(ge=200, le=4000)]
    height: Annotated[StrictInt, Field(ge=200, le=4000)]


class Location(RequestBody):
    """The languages in which a page is requested."""

    country: Annotated[StrictStr, Field(pattern=r"^[A-Za-z]{2}$")] | None = Field(
        None, description="The region of languages that are sent without one, such as `AT`."
    )
    languages: Annotated[
        list[Annotated[StrictStr, Field(pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$")]],
        Field(max_length=10),
    ] = Field(default=[])

    @property
    def tags(self) -> list[str]:
        """The languages with their regions, in order."""
        region = f"-{self.country.upper()}" if self.country else ""
        return [each if "-" in each else each + region for each in self.languages]

    @property
    def accept_language(self) -> str | None:
        """The value of the header, with falling weights; None without languages."""
        tags = [tag for each in self.tags for tag in dict.fromkeys((each, each.partition("-")[0]))]
        weighted = [
            tag if number == 0 else f"{tag};q={max(1, 10 - number) / 10:g}"
            for number, tag in enumerate(dict.fromkeys(tags))
        ]
        return ", ".join(weighted) or None


class ScreenshotOptions(RequestBody):
    """A picture of the page."""

    full_page: StrictBool = False
    quality: Annotated[StrictInt, Field(ge=1, le=100)] | None = Field(
        None, description="With it the picture is a JPEG of this quality, without it a PNG."
    )
    viewport: Viewport | None = None
