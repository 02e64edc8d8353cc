"""The formats of Firecrawl's API: names, or objects with a `type` and its options."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from fairlead.errors import InvalidRequest

_SERVED: Final = {
    "markdown": "markdown",
    "html": "html",
    "rawHtml": "rawHtml",
    "links": "links",
    "images": "images",
    "screenshot": "screenshot",
    "screenshot@fullPage": "screenshot",
    "json": "json",
    "summary": "summary",
    "changeTracking": "changeTracking",
}
"""Firecrawl's formats, with the name that a scrape has for each."""

_OPTIONS: Final = {
    "json": {"schema", "prompt"},
    "screenshot": {"fullPage", "quality", "viewport"},
}
"""The options of formats that are served."""


@dataclass(slots=True)
class Formats:
    """The formats of a request.

    `options` are the fields of a scrape's options that they become, `passed_over` the formats and options that are not
    served.
    """

    names: set[str] = field(default_factory=set)
    options: dict[str, Any] = field(default_factory=dict)
    passed_over: list[str] = field(default_factory=list)

    @property
    def content_form(self) -> str:
        """The form of the page's content. The content of the form `text` is not shown."""
        return next((form for form in ("markdown", "html") if form in self.names), "text")


def read_formats(sent: list[str | dict[str, Any]]) -> Formats:
    """`InvalidRequest` where a format has no type, or `json` has neither a schema nor a prompt."""
    formats = Formats()
    for number, each in enumerate(sent):
        name = each if isinstance(each, str) else each.get("type")
        if not isinstance(name, str):
            raise InvalidRequest(
                f"formats[{number}] must be a name, or an object with a type.",
                param=f"formats[{number}]",
            )
        if name not in _SERVED:
            formats.passed_over.append(f"formats[{number}] ({name[:40]})")
            continue
        options = {} if isinstance(each, str) else {k: v for k, v in each.items() if k != "type"}
        formats.names.add(_SERVED[name])
        served = _OPTIONS.get(name, set())
        _read_options(formats, name, {k: v for k, v in options.items() if k in served}, number)
        formats.passed_over += [f"formats[{number}].{k[:40]}" for k in options if k not in served]
    return formats


def _read_options(formats: Formats, name: str, options: dict[str, Any], number: int) -> None:
    if name == "json":
        if not any(options.get(member) for member in ("schema", "prompt")):
            raise InvalidRequest(
                f"formats[{number}] of type json needs schema, prompt or both.",
                param=f"formats[{number}]",
            )
        formats.options["jsonOptions"] = {k: v for k, v in options.items() if v is not None}
    if name == "screenshot" and options:
        formats.options["screenshot"] = {k: v for k, v in options.items() if v is not None}
    if name == "screenshot@fullPage":
        formats.options["screenshot"] = {"fullPage": True}
