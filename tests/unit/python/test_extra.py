"""Optional parts: pyproject.toml names no other, and one that is missing names the command that installs it."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from fairlead.egress import Egress
from fairlead.errors import InvalidRequest, Refusal
from fairlead.extra import EXTRAS, install_command, is_installed
from fairlead.scrape.browser.process import Browser
from fairlead.standin.installed import check_standin

PYPROJECT = Path(__file__).resolve().parents[3] / "pyproject.toml"


def hide(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    """As where the module is not installed."""
    for name in [module, *(each for each in sys.modules if each.startswith(f"{module}."))]:
        monkeypatch.setitem(sys.modules, name, None)


def test_every_extra_of_the_package_is_known() -> None:
    declared = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    assert set(EXTRAS) == set(declared)
    assert install_command("browser") == "pip install 'fairlead[browser]'"


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_hidden_module_is_not_installed(extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, EXTRAS[extra].partition(".")[0])
    assert not is_installed(extra)


def test_the_stand_in_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, "robyn")
    with pytest.raises(Refusal, match=re.escape(install_command("standin"))):
        check_standin()


@pytest.mark.anyio
async def test_the_browser_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, "playwright")
    egress = Egress("")
    try:
        with pytest.raises(InvalidRequest, match=re.escape(install_command("browser"))):
            await Browser(egress)._start()
    finally:
        egress.close()
