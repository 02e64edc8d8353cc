"""The pages of the console: every module of `pages/` names its own in `PAGES`."""

from __future__ import annotations

import pkgutil
import re
from functools import cache
from importlib import import_module

from fairlead.dashboard import pages
from fairlead.dashboard.page import Group, Page

GROUPS: tuple[Group, ...] = ("Observe", "Build", "Access", "Protect", "Tools", "Operate")
_SEGMENT = r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,199}"


@cache
def all_pages() -> tuple[Page, ...]:
    """Every page, those with fixed paths first. `RuntimeError` for two at one path."""
    found: list[Page] = []
    for module in pkgutil.iter_modules(pages.__path__):
        found += import_module(f"{pages.__name__}.{module.name}").PAGES
    paths = [re.sub(r"\{[^}]*\}", "{}", page.path) for page in found]
    if len(set(paths)) != len(paths):
        raise RuntimeError(f"two pages of the console have one path: {sorted(paths)}")
    return tuple(sorted(found, key=lambda page: ("{" in page.path, page.path)))


@cache
def navigation() -> tuple[tuple[Group, tuple[Page, ...]], ...]:
    """The pages that the navigation shows, by group."""
    return tuple(
        (group, tuple(sorted(_of(group), key=lambda page: (page.rank, page.title))))
        for group in GROUPS
    )


def navigation_has(address: str) -> bool:
    """Whether the page at an address, or one above it, is in the navigation."""
    places = (page.address for _, pages in navigation() for page in pages)
    return any(
        address == place or (place != "/dashboard" and address.startswith(f"{place}/"))
        for place in places
    )


def find_page(path: str) -> tuple[Page, dict[str, str]] | None:
    """The page at a path below `/dashboard`, and the values of its names."""
    for page in all_pages():
        found = _pattern(page.path).fullmatch(path)
        if found is not None:
            return page, found.groupdict()
    return None


def _of(group: Group) -> list[Page]:
    return [page for page in all_pages() if page.group == group]


@cache
def _pattern(path: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", path)
    pieces = [
        f"(?P<{part}>{_SEGMENT})" if number % 2 else re.escape(part)
        for number, part in enumerate(parts)
    ]
    return re.compile("".join(pieces))
