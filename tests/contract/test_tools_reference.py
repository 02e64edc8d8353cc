"""What is written about the tools is what the code says."""

from __future__ import annotations

from pathlib import Path

from fairlead.control.tools import STATIC
from fairlead.control.tools_reference import tools_reference
from fairlead.tasks.tools import SERVER

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "tools.md"


def test_the_committed_page_is_fresh() -> None:
    """`make reference` writes it."""
    assert PAGE.read_text(encoding="utf-8") == tools_reference()


def test_every_tool_has_its_heading_once() -> None:
    headings = [line[4:] for line in tools_reference().splitlines() if line.startswith("### ")]
    tools = (*STATIC.toolbox.tools, *SERVER.toolbox.tools)
    assert headings == [tool.name for tool in tools]
