"""Documents that point somewhere point at something, and name commands that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from fairlead.cli.app import app

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors_of(page: Path) -> set[str]:
    """Headings as they are linked to: small letters, dashes for spaces, nothing else."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8"))
    dead = []
    for link in links:
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            dead.append(link)

    assert not dead


def test_every_page_can_be_found_from_the_index() -> None:
    """Whoever opens docs/README.md finds each page there, decisions in their own list."""
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    decisions = ROOT / "docs" / "explanation" / "decisions"
    listed = (decisions / "README.md").read_text("utf-8")

    lost = [
        name_of(page)
        for page in sorted((ROOT / "docs").rglob("*.md"))
        if page.name != "README.md"
        and page.name not in (listed if page.parent == decisions else index)
    ]

    assert not lost


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_make_target_exists(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = set(re.findall(r"(?:^ {4}|`)make ([a-z-]+)", page.read_text("utf-8"), re.MULTILINE))

    assert named <= targets


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_exists(page: Path) -> None:
    """`fairlead keys create` in a line of code or between backticks; `fairlead ready` is printed."""
    commands = typer.main.get_command(app)
    text = page.read_text("utf-8")
    for words in re.findall(
        r"(?:^ {4}|`)(?:\.venv/bin/)?fairlead (?!ready )((?:[a-z-]+ ?)+)", text, re.MULTILINE
    ):
        command = commands
        for word in words.split():
            group = getattr(command, "commands", None)
            # `setup-<tool>` stands for all of them.
            if group is None or word.startswith("-") or word == "setup-":
                break
            command = group.get(word) or command.get_command(None, word)
            assert command is not None, f"fairlead {words}"


def test_the_front_page_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) < 200
