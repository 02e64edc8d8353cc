"""The board's pages as they are sent: who gets them, what guards them, what their forms may not do."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import pytest

from fairlead.identity.users import insert_user, new_user

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

FORM = {"content-type": "application/x-www-form-urlencoded"}
CANARY = '"><script>alert(1)</script>'


@pytest.fixture
async def ada(control) -> dict[str, str]:
    """Who asks as Ada, who manages nothing."""
    user = new_user("ada@example.org", CANARY, "member", None)
    await control.app.state.services.state.record(lambda con: insert_user(con, user))
    return control.as_principal("session", user.id)


async def post(control, who: dict[str, str], **fields: str):
    return await control.client.post("/board", content=urlencode(fields), headers=who | FORM)


async def make(control, who: dict[str, str], name: str = CANARY) -> str:
    answer = await post(control, who, act="create_project", name=name, description=CANARY)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"].removeprefix("/board/")


async def test_pages_are_shut_to_frames_foreign_scripts_and_caches_and_hold_names_inert(
    control, ada
) -> None:
    project_id = await make(control, ada)
    todo = {"act": "create_todo", "projectId": project_id, "title": CANARY, "status": "todo"}
    assert (await post(control, ada, **todo)).status_code == 303
    listed = await control.client.get(f"/api/board/projects/{project_id}/todos", headers=ada)
    todo_id = listed.json()["todos"][0]["id"]
    change = {"act": "change_todo", "todoId": todo_id, "title": CANARY, "tags": CANARY}
    assert (await post(control, ada, **change)).status_code == 303
    for path in (
        "/board",
        f"/board/{project_id}",
        f"/board/{project_id}/list?text={CANARY}",
        f"/board/{project_id}/settings",
        f"/board/todos/{todo_id}",
        "/board/tokens",
    ):
        answer = await control.client.get(path, headers=ada)
        assert answer.status_code == 200, path
        policy = answer.headers["content-security-policy"]
        for part in (
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
        ):
            assert part in policy
        assert "unsafe" not in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "<script>" not in answer.text, path
        assert not re.search(r"\s(style|on\w+)=", answer.text), path
        labelled = set(re.findall(r'<label[^>]* for="([^"]+)"', answer.text))
        ids = re.findall(r' id="([^"]+)"', answer.text)
        assert len(ids) == len(set(ids)), path
        assert labelled <= set(ids), path
        for field in re.findall(r"<(?:input|select|textarea)[^>]*>", answer.text):
            if 'type="hidden"' not in field and "aria-label" not in field:
                assert re.search(r' id="([^"]+)"', field)[1] in labelled, field


async def test_files_of_the_pages_may_be_kept(control) -> None:
    for name, kind in (("board.css", "text/css"), ("board.js", "text/javascript")):
        answer = await control.client.get(f"/board/{name}")
        assert answer.headers["content-type"].startswith(kind)
        assert "immutable" in answer.headers["cache-control"]


async def test_without_a_session_the_way_leads_through_the_sign_in_and_back(control) -> None:
    nobody = control.as_principal("anonymous")
    for path, back in (
        ("/board", "%2Fboard"),
        ("/board/x/list?status=done", "%2Fboard%2Fx%2Flist%3Fstatus%3Ddone"),
    ):
        answer = await control.client.get(path, headers=nobody)
        assert (answer.status_code, answer.headers["location"]) == (302, f"/login?return_to={back}")
    answer = await post(control, nobody, act="create_project", name="x")
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?return_to=%2Fboard")


async def test_what_is_not_there_for_the_person_is_not_there(control, ada) -> None:
    answer = await control.client.post(
        "/api/board/projects", json={"name": "Other"}, headers=control.as_principal("local")
    )
    # The local command line acts for the owner, whom this instance has from its settings.
    project_id = answer.json()["project"]["id"]
    for path in (
        f"/board/{project_id}",
        f"/board/{project_id}/list",
        f"/board/{project_id}/settings",
        "/board/todos/x",
        "/board/x",
    ):
        answer = await control.client.get(path, headers=ada)
        assert answer.status_code == 404, path
        assert "Other" not in answer.text
    for act in ("create_todo", "create_sprint", "create_tag", "change_project", "delete_project"):
        fields = {"act": act, "projectId": project_id, "title": "x", "name": "x"}
        del fields["name" if act == "create_todo" else "title"]
        assert (await post(control, ada, **fields)).status_code == 404, act


async def test_a_form_that_no_page_sends_is_told_so(control, ada) -> None:
    for fields, words in (
        ({}, "names no known action"),
        ({"act": "drop"}, "names no known action"),
        ({"act": "create_todo", "title": "x"}, "lacks projectId"),
        ({"act": "create_project"}, "name is required"),
        ({"act": "create_project", "name": "x", "role": "maintainer"}, "role is no argument"),
    ):
        answer = await post(control, ada, **fields)
        assert answer.status_code == 400
        assert words in answer.text
        assert 'role="alert"' in answer.text
    for body in (b"act=a&act=b", b"\xff", b"&".join(b"a%d=1" % n for n in range(50))):
        answer = await control.client.post("/board", content=body, headers=ada | FORM)
        assert answer.status_code == 400


async def test_a_project_is_deleted_by_typing_its_name(control, ada) -> None:
    project_id = await make(control, ada, "Refit")
    wrong = await post(control, ada, act="delete_project", projectId=project_id, name="refit")
    assert (wrong.status_code, "Type the name" in wrong.text) == (400, True)
    right = await post(control, ada, act="delete_project", projectId=project_id, name="Refit")
    assert (right.status_code, right.headers["location"]) == (303, "/board")
