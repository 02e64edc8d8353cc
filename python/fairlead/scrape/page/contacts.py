"""Contacts of a page: mail addresses, telephone numbers and social profiles, from its links and its text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import unquote

from fairlead.net.url import split_url

EACH_MAX: Final = 100

_MAIL: Final = re.compile(
    r"(?<![\w.%+-])[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,6}\.[A-Za-z]{2,24}(?![\w-])"
)
_PHONE: Final = re.compile(r"[^0-9+]")
_PLATFORMS: Final = {
    "bsky.app": "bluesky",
    "facebook.com": "facebook",
    "github.com": "github",
    "instagram.com": "instagram",
    "linkedin.com": "linkedin",
    "pinterest.com": "pinterest",
    "reddit.com": "reddit",
    "t.me": "telegram",
    "tiktok.com": "tiktok",
    "twitter.com": "x",
    "wa.me": "whatsapp",
    "x.com": "x",
    "youtube.com": "youtube",
}
# A link that shares the page itself is nobody's profile.
_SHARING: Final = re.compile(
    r"/(?:share|sharer|sharer\.php|shareArticle|intent|submit|pin/create)\b"
)


def contacts_of(text: str, links: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """`emails`, `phones` and `social` (`platform`, `url`), each once, in order, at most `EACH_MAX`."""
    emails: dict[str, None] = {}
    phones: dict[str, None] = {}
    social: dict[str, str] = {}
    for link in links:
        href = link["href"].strip()
        scheme, _, rest = href.partition(":")
        if scheme.lower() == "mailto":
            if found := _MAIL.fullmatch(unquote(rest.partition("?")[0]).strip()):
                emails[found[0]] = None
        elif scheme.lower() == "tel":
            if 5 <= len(number := _PHONE.sub("", unquote(rest))) <= 20:
                phones[number] = None
        elif platform := _platform(href):
            social.setdefault(href, platform)
    for found in _MAIL.finditer(text):
        emails[found[0]] = None
    return {
        "emails": list(emails)[:EACH_MAX],
        "phones": list(phones)[:EACH_MAX],
        "social": [
            {"platform": platform, "url": url} for url, platform in list(social.items())[:EACH_MAX]
        ],
    }


def _platform(href: str) -> str | None:
    try:
        parts = split_url(href)
        host = (parts.hostname or "").removeprefix("www.")
    except ValueError:
        return None
    is_someone = parts.path.strip("/") and not _SHARING.search(parts.path)
    domain = host if host in _PLATFORMS else ".".join(host.split(".")[-2:])
    return _PLATFORMS.get(domain) if is_someone else None
