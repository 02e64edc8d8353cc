"""The board has the console's frame: navigation, theme and who is signed in, on desktop and phone."""

from __future__ import annotations

import re

import pytest

from fairlead.dashboard.registry import navigation
from tests.contract.test_console import admin as admin  # noqa: PLC0414 - a fixture
from tests.contract.test_console import member as member  # noqa: PLC0414 - a fixture
from tests.contract.test_console import post

pytestmark = pytest.mark.anyio


def frame_of(page: str) -> str:
    """The navigation of a page, without the marks of the current page."""
    (found,) = re.findall(r'<nav class="side".*?</nav>', page, re.DOTALL)
    marks = r' open| aria-current="page"|<input type="hidden" name="back"[^>]*>'
    own = r'<ul><li><a href="/board" aria-current="page">.*?</ul>'
    return re.sub(r"\s+", " ", re.sub(marks, "", re.sub(own, "", found)))


async def test_the_frame_of_the_board_is_that_of_the_console(control, admin) -> None:
    console = (await control.client.get("/dashboard", headers=admin)).text
    for path in ("/board", "/board/tokens"):
        board = (await control.client.get(path, headers=admin)).text
        assert frame_of(board) == frame_of(console)
        assert '<a href="/board" aria-current="page">' in board
        assert '<details name="places" open>' not in board, "no link hides one of a project"
    for _, pages in navigation():
        assert all(f'href="{each.address}"' in board for each in pages)


async def test_a_member_sees_the_board_and_the_account_alone(control, member) -> None:
    board = (await control.client.get("/board", headers=member)).text
    assert "/dashboard/keys" not in board
    assert 'href="/dashboard/account"' in board
    assert 'action="/dashboard/theme"' in board


async def test_a_theme_that_is_chosen_on_the_board_leads_back_to_it(control, admin) -> None:
    for back, expected in (
        ("/board/tokens", "/board/tokens"),
        ("/boards", "/dashboard"),
        ("https://evil.example/board", "/board"),
        ("//evil.example/board", "/board"),
    ):
        answer = await post(control, admin, "/dashboard/theme", theme="dark", back=back)
        assert answer.headers["location"] == expected, back
    who = {**admin, "cookie": f"{admin.get('cookie', '')}; fairlead_theme=dark"}
    board = (await control.client.get("/board", headers=who)).text
    assert 'data-theme="dark"' in board
    assert 'value="dark" title="Dark" aria-label="Dark" aria-pressed="true"' in board
