"""Optional parts: pyproject.toml names no other, and one that is missing names the command that installs it."""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

from fairlead.errors import InvalidRequest, Refusal
from fairlead.net.egress import Egress
from fairlead.process.extra import EXTRAS, install_command, is_installed
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


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_command_names_the_packages_themselves(extra: str) -> None:
    """Each word is one argument of a shell, and no registry is asked for fairlead."""
    declared = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"][extra]
    *installer, _ = words = shlex.split(install_command(extra))
    assert words[:4] == [sys.executable, "-m", "pip", "install"], installer
    assert {name_and_bounds(each) for each in words[4:]} == {
        name_and_bounds(each) for each in declared
    }
    assert "fairlead" not in " ".join(words[4:])


def test_documents_name_the_same_packages() -> None:
    """Pages and the code say one thing, and no page asks a registry for fairlead."""
    extras = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    declared = {name_and_bounds(each) for extra in extras.values() for each in extra}
    shown = set()
    for page in [*(PYPROJECT.parent / "docs").rglob("*.md"), PYPROJECT.parent / "README.md"]:
        for command in re.findall(r"-m\s+pip\s+install((?:\s+'[^']+')+)", page.read_text()):
            shown |= {name_and_bounds(each) for each in re.findall(r"'([^']+)'", command)}
        assert "pip install 'fairlead[" not in page.read_text(), page
    assert shown == declared


def name_and_bounds(requirement: str) -> tuple[str, frozenset[str]]:
    """What a requirement says, in whatever order its bounds are written."""
    name = re.match(r"[A-Za-z0-9._-]+(\[[^]]*\])?", requirement)
    assert name is not None
    return name[0], frozenset(requirement[name.end() :].replace(" ", "").split(","))


def test_an_environment_without_pip_is_served_by_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, "pip")
    expected = ["uv", "pip", "install", "--python", sys.executable]
    assert shlex.split(install_command("standin"))[:5] == expected


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
