"""The forms of the page *Scraping* send `useBrowser` only if the person chose one, so that the setting decides."""

from __future__ import annotations

import pytest

from fairlead.dashboard.api import Refused
from fairlead.dashboard.form import Field
from fairlead.dashboard.page import FormFields
from fairlead.dashboard.pages.scraping import CRAWL, TRY, read_options

URL = "https://example.org/"


@pytest.mark.parametrize("fields", [TRY, CRAWL], ids=["try", "crawl"])
@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ({}, None),
        ({"useBrowser": "setting"}, None),
        ({"useBrowser": "always"}, True),
        ({"useBrowser": "never"}, False),
    ],
    ids=["absent", "setting", "always", "never"],
)
def test_the_setting_decides_unless_the_person_does(
    fields: tuple[Field, ...], typed: FormFields, sent: bool | None
) -> None:
    options = read_options(fields, {"url": URL, **typed})
    assert options.get("useBrowser") is sent
    assert ("useBrowser" in options) is (sent is not None)


def test_another_choice_is_refused() -> None:
    with pytest.raises(Refused):
        read_options(TRY, {"url": URL, "useBrowser": "maybe"})
