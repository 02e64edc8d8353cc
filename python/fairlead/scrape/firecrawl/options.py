"""From Firecrawl's options of a page to the options of a scrape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from fairlead.scrape.firecrawl.formats import read_formats
from fairlead.scrape.firecrawl.requests import NAMES_MAX, PageOptions
from fairlead.scrape.requests.fields import LoweredValue
from fairlead.scrape.requests.page import ScrapeOptions
from fairlead.text.invalid import invalid_request

TIMEOUT_MAX_MS: Final = 300_000
_LOCATION: Final = frozenset({"country", "languages"})

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Translated:
    """The options of a scrape, and the names of what is not served."""

    options: ScrapeOptions
    passed_over: list[str]


def translate(sent: PageOptions, prefix: str = "") -> Translated:
    """`InvalidRequest` for a value that no scrape takes. `prefix` goes before the names of members."""
    formats = read_formats(["markdown"] if sent.formats is None else sent.formats)
    actions, without = _actions(sent.actions or [])
    location = {k: v for k, v in (sent.location or {}).items() if k in _LOCATION} or None
    without += [f"location.{name[:40]}" for name in sent.location or {} if name not in _LOCATION]
    fields: dict[str, Any] = {
        "extractorFormat": formats.content_form,
        "formats": sorted(formats.names - {formats.content_form}),
        "onlyMainContent": sent.only_main_content is not False,
        "skipTlsVerification": bool(sent.skip_tls_verification),
        "skipCache": sent.max_age == 0 or sent.store_in_cache is False,
        "maxAge": sent.max_age or None,
        "waitForTimeout": sent.wait_for or None,
        "actions": actions,
        "headers": sent.headers or {},
        "includeTags": sent.include_tags or [],
        "excludeTags": sent.exclude_tags or [],
        "mobile": bool(sent.mobile),
        "removeBase64Images": sent.remove_base64_images is not False,
        "timeout": None if sent.timeout is None else min(max(sent.timeout, 1000), TIMEOUT_MAX_MS),
        "location": location,
        **formats.options,
    }
    passed_over = [*sent.unknown, *formats.passed_over, *without]
    return Translated(validated(ScrapeOptions, fields), [prefix + name for name in passed_over])


def validated(model: type[M], fields: dict[str, Any]) -> M:
    """The body of a route of ours. `InvalidRequest` names the first field that is wrong."""
    try:
        return model.model_validate(fields)
    except ValidationError as fault:
        raise invalid_request(fault.errors(include_url=False, include_context=False)) from None


def warning_of(passed_over: Sequence[str], lowered: Sequence[LoweredValue] = ()) -> dict[str, str]:
    """The answer's `warning`, if something was passed over or lowered to our bound."""
    sentences: list[str] = []
    if passed_over:
        names = ", ".join(passed_over[:NAMES_MAX])
        sentences.append(f"Not served here, and passed over: {names}.")
    sentences += [f"{each['path']} was lowered to {each['applied']:g}." for each in lowered]
    return {"warning": " ".join(sentences)} if sentences else {}


def _actions(sent: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """Our actions, and the names of those that a scrape does not have."""
    actions: list[dict[str, Any]] = []
    without: list[str] = []
    for number, action in enumerate(sent):
        ours = _action(action, actions[-1] if actions else None)
        if ours is None:
            without.append(f"actions[{number}] ({str(action.get('type'))[:40]})")
        else:
            actions.append(ours)
    return actions, without


def _action(sent: dict[str, Any], previous: dict[str, Any] | None) -> dict[str, Any] | None:
    match sent.get("type"):
        case "wait" if sent.get("selector"):
            return {"type": "wait", "selector": sent["selector"]}
        case "wait":
            return {"type": "wait", "timeout": sent.get("milliseconds", 1000)}
        case "click" if not sent.get("all"):
            return {"type": "click", "selector": sent.get("selector")}
        case "write" if previous is not None and previous["type"] == "click":
            # It types into the element that was clicked before it.
            return {"type": "fill", "selector": previous["selector"], "value": sent.get("text")}
        case "scroll" if sent.get("selector"):
            return {"type": "scroll", "selector": sent["selector"]}
        case "scroll" if sent.get("direction", "down") == "down":
            return {"type": "scroll"}
        case "scroll" if sent.get("direction") == "up":
            return {"type": "scroll", "position": 0}
    return None
