"""The board's pages in a real browser: with a mouse, by keyboard alone, at phone width, without scripts.

With `FAIRLEAD_DOCS_IMAGES=docs/images` the slow test takes the pictures that the documentation shows.
"""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.browser_tab import PHONE, Tab
from tests.support.owner import OWNER_PASSWORD
from tests.support.processes import Gateway, expect

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: `make develop` installs it"
)
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no chromium: apt-get install chromium"
)

INERT = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def gateway(owned_gateway: Gateway) -> Gateway:
    return owned_gateway


def make_project(owner: httpx.Client, name: str) -> tuple[str, dict[str, str]]:
    """A project with five todos in two columns; its id, and the todos' by title."""
    project = expect(owner.post("/api/board/projects", json={"name": name}), 201)["project"]
    path = f"/api/board/projects/{project['id']}/todos"
    made = {}
    for title, status in (
        ("Sand", "todo"),
        ("Varnish", "todo"),
        ("Rig", "todo"),
        (INERT, "in_progress"),
        ("Launch", "in_progress"),
    ):
        body = {"title": title, "status": status}
        made[title] = expect(owner.post(path, json=body), 201)["todo"]["id"]
    return project["id"], made


def titles(owner: httpx.Client, project_id: str, status: str) -> list[str]:
    path = f"/api/board/projects/{project_id}/todos"
    found = expect(owner.get(path, params={"status": status}), 200)["todos"]
    return [todo["title"] for todo in found]


def test_by_keyboard_alone_a_todo_is_moved_and_every_step_is_told(
    gateway: Gateway, owner: httpx.Client, browser: Any
) -> None:
    project_id, _ = make_project(owner, "Keys")
    with Tab(browser, gateway, owner) as tab:
        page = tab.page
        page.goto(f"/board/{project_id}")
        press = page.keyboard.press
        for _ in range(60):
            press("Tab")
            focused = page.evaluate("document.activeElement.getAttribute('aria-label')")
            if focused == "Move Varnish":
                break
        assert focused == "Move Varnish"
        press("Enter")
        tab.hears("Picked up Varnish, in To do, 2 of 3.")
        press("ArrowRight")
        tab.hears("Varnish: In progress, 2 of 3.")
        press("ArrowUp")
        tab.hears("Varnish: In progress, 1 of 3.")
        press("Escape")
        tab.hears("Varnish stays in To do, 2 of 3.")
        assert titles(owner, project_id, "todo") == ["Sand", "Varnish", "Rig"]
        press(" ")
        press("ArrowRight")
        press("ArrowUp")
        press("Enter")
        tab.hears("Varnish is now in In progress, 1 of 3.")
        assert titles(owner, project_id, "in_progress") == ["Varnish", INERT, "Launch"]
        assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Move Varnish"
        counts = page.locator("[data-count]").all_inner_texts()
        assert counts == ["0", "2", "3", "0", "0"]
        page.reload()
        assert page.locator("[data-count]").all_inner_texts() == counts


def test_by_mouse_a_todo_is_dragged_and_a_refused_move_goes_back(
    gateway: Gateway, owner: httpx.Client, browser: Any
) -> None:
    project_id, ids = make_project(owner, "Mouse")
    with Tab(browser, gateway, owner) as tab:
        page = tab.page
        page.goto(f"/board/{project_id}")
        card = page.locator(f"[data-todo='{ids['Sand']}']")
        card.drag_to(
            page.locator(f"[data-todo='{ids['Launch']}']"), target_position={"x": 20, "y": 2}
        )
        tab.hears("Sand is now in In progress, 2 of 3.")
        assert titles(owner, project_id, "in_progress") == [INERT, "Sand", "Launch"]
        card.drag_to(page.locator("[data-status='done'] [data-cards]"))
        tab.hears("Sand is now in Done, 1 of 1.")
        assert titles(owner, project_id, "done") == ["Sand"]
        # Somebody else deletes it meanwhile.
        expect(owner.delete(f"/api/board/todos/{ids['Sand']}"), 200)
        card.drag_to(page.locator("[data-status='review'] [data-cards]"))
        tab.hears("Sand was not moved: There is no todo with this id.")
        assert page.locator("[data-status='done'] .card").count() == 1
        assert [text for text in tab.complaints if "404" in text] == tab.complaints
        tab.complaints.clear()


def test_a_phone_has_the_same_by_touch(gateway: Gateway, owner: httpx.Client, browser: Any) -> None:
    project_id, _ = make_project(owner, "Touch")
    with Tab(browser, gateway, owner, viewport=PHONE, has_touch=True, is_mobile=True) as tab:
        page = tab.page
        for path in (
            "/board",
            f"/board/{project_id}",
            f"/board/{project_id}/list",
            f"/board/{project_id}/settings",
            "/board/tokens",
        ):
            page.goto(path)
            assert tab.fits(), path
        page.goto(f"/board/{project_id}")
        page.get_by_role("button", name="Move Rig").tap()
        for step in ("To the next column", "Up", "Put down"):
            page.get_by_role("button", name=step, exact=True).tap()
        tab.hears("Rig is now in In progress, 2 of 3.")
        assert titles(owner, project_id, "in_progress") == [INERT, "Rig", "Launch"]
        assert page.get_by_role("toolbar").is_hidden()


def test_without_scripts_everything_can_still_be_done(
    gateway: Gateway, owner: httpx.Client, browser: Any
) -> None:
    with Tab(browser, gateway, None, java_script_enabled=False) as tab:
        page = tab.page
        page.goto("/board")
        assert "/login" in page.url
        page.get_by_label("Password").fill(OWNER_PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        assert page.url == f"{gateway.url}/board"
        page.get_by_label("Name").fill("Plain")
        page.get_by_role("button", name="Create project").click()
        project_id = page.url.rpartition("/")[2]
        assert page.get_by_role("heading", name="Plain").is_visible()
        page.get_by_label("New todo in To do").fill("Caulk")
        page.get_by_role("button", name="Add to To do").click()
        page.get_by_role("link", name="Caulk").click()
        page.get_by_label("Status").select_option("review")
        page.get_by_label("Due").fill("2027-01-05")
        page.get_by_label("Tags").fill("hull, deck")
        page.get_by_role("button", name="Save").click()
        assert titles(owner, project_id, "review") == ["Caulk"]
        page.get_by_role("link", name="List").click()
        row = page.get_by_role("row", name="Caulk")
        assert "5 Jan 2027" in row.inner_text()
        page.get_by_role("link", name="Settings").click()
        page.get_by_label("New sprint").fill("One")
        page.get_by_role("button", name="Add sprint").click()
        page.get_by_role("button", name="Make One active").click()
        assert "active" in page.get_by_role("listitem").filter(has_text="One").first.inner_text()
        page.goto("/board/tokens")
        page.get_by_label("Name").fill("laptop")
        page.get_by_role("button", name="Make a token").click()
        token = page.get_by_label("The new token").input_value()
        bearer = {"authorization": f"Bearer {token}"}
        call = {"tool": "projects_get", "input": {"projectId": project_id}}
        assert httpx.post(f"{gateway.url}/mcp", json=call, headers=bearer).json()["ok"] is True
        page.get_by_role("button", name="Revoke laptop").click()
        assert httpx.post(f"{gateway.url}/mcp", json=call, headers=bearer).status_code == 401
        # A form that was open while somebody else changed the todo does not undo the change.
        page.goto(f"/board/{project_id}")
        page.get_by_role("link", name="Caulk").click()
        todo_id = page.url.rpartition("/")[2]
        expect(owner.patch(f"/api/board/todos/{todo_id}", json={"title": "Caulk it"}), 200)
        page.get_by_label("Title").fill("Lost")
        page.get_by_role("button", name="Save").click()
        assert "It was changed in the meantime" in page.get_by_role("alert").inner_text()
        tab.complaints.clear()  # the 409 of the form itself


def seed(owner: httpx.Client, gateway: Gateway) -> str:
    """A project as somebody might have it."""
    body = {"name": "Boat refit", "description": "Ready for the season: hull, deck, rig."}
    project_id = expect(owner.post("/api/board/projects", json=body), 201)["project"]["id"]
    path = f"/api/board/projects/{project_id}"
    sprint = {"name": "Dry dock", "status": "active", "goal": "Everything below the waterline."}
    today = datetime.now(UTC).date()
    sprint |= {"startsOn": str(today - timedelta(5)), "endsOn": str(today + timedelta(9))}
    sprint_id = expect(owner.post(f"{path}/sprints", json=sprint), 201)["sprint"]["id"]
    for name, color in (
        ("hull", "#0969da"),
        ("deck", "#1a7f37"),
        ("rig", "#bf3989"),
        ("safety", "#cf222e"),
    ):
        expect(owner.post(f"{path}/tags", json={"name": name, "color": color}), 201)
    user = {"email": "mara@example.org", "name": "Mara", "currentPassword": OWNER_PASSWORD}
    mara = expect(owner.post("/api/users", json=user), 201)["id"]
    expect(owner.post(f"{path}/members", json={"userId": mara}), 201)
    me = expect(owner.get("/api/auth/me"), 200)["id"]
    for title, status, tags, days, who in (
        ("Order new flares", "backlog", ["safety"], None, None),
        ("Compare prices of anchors", "backlog", [], None, None),
        ("Teach the crew the new winch", "backlog", ["deck"], None, None),
        ("Replace the lower shrouds", "todo", ["rig"], 6, mara),
        ("Service the life raft", "todo", ["safety"], 2, me),
        ("Sand the cabin roof", "todo", ["deck"], None, None),
        ("Two coats of antifouling", "in_progress", ["hull"], 1, mara),
        ("Find the leak at the stern gland", "in_progress", ["hull", "safety"], -1, me),
        ("Varnish the handrails", "review", ["deck"], 3, me),
        ("Haul out and wash down", "done", ["hull"], None, mara),
        ("Survey the keel bolts", "done", ["hull", "safety"], None, me),
    ):
        todo = {"title": title, "status": status, "tags": tags, "assigneeId": who}
        todo["dueOn"] = None if days is None else str(today + timedelta(days))
        if status != "backlog":
            todo["sprintId"] = sprint_id
        expect(owner.post(f"{path}/todos", json=todo), 201)
    return project_id


@pytest.mark.slow
def test_pictures_for_the_documentation(
    gateway: Gateway, owner: httpx.Client, browser: Any, tmp_path: Path
) -> None:
    folder = Path(os.environ.get("FAIRLEAD_DOCS_IMAGES", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    project_id = seed(owner, gateway)
    for name, path, options in (
        ("board-kanban", f"/board/{project_id}", {}),
        ("board-list", f"/board/{project_id}/list", {}),
        ("board-settings", f"/board/{project_id}/settings", {}),
        (
            "board-phone",
            f"/board/{project_id}",
            {"viewport": PHONE, "is_mobile": True, "has_touch": True},
        ),
        ("board-phone-list", f"/board/{project_id}/list", {"viewport": PHONE, "is_mobile": True}),
    ):
        with Tab(browser, gateway, owner, **options) as tab:
            tab.page.goto(path)
            assert tab.fits(), name
            if name == "board-kanban":
                tab.page.get_by_role("button", name="Move Sand the cabin roof").click()
            picture = folder / f"{name}.png"
            tab.page.screenshot(path=picture, full_page=name in ("board-settings", "board-list"))
            assert picture.stat().st_size > 10_000
