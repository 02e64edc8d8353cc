"""The board's API: projects, members, todos and their order, sprints, tags, and who may do what."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from fairlead.identity.users import Role, delete_user, insert_user, new_user

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

API = "/api/board"


class Someone:
    """A person who asks the board, as the relay says who they are."""

    def __init__(self, control, user_id: str, *scopes: str) -> None:
        self.control = control
        self.id = user_id
        self.headers = control.as_principal("session", user_id, list(scopes))

    async def ask(self, method: str, path: str, body=None, *, expect: int = 200, **query):
        answer = await self.control.client.request(
            method, API + path, json=body, params=query, headers=self.headers
        )
        assert answer.status_code == expect, answer.text
        return answer.json()

    async def refused(self, method: str, path: str, body=None, *, expect: int, **query):
        error = (await self.ask(method, path, body, expect=expect, **query))["error"]
        return error["message"], error["param"]

    async def project(self, name: str = "Refit") -> str:
        return (await self.ask("POST", "/projects", {"name": name}, expect=201))["project"]["id"]

    async def todo(self, project_id: str, title: str, **fields) -> dict:
        body = {"title": title, **fields}
        made = await self.ask("POST", f"/projects/{project_id}/todos", body, expect=201)
        return made["todo"]

    async def titles(self, project_id: str, **query) -> list[str]:
        found = await self.ask("GET", f"/projects/{project_id}/todos", limit=500, **query)
        return [todo["title"] for todo in found["todos"]]


async def person(control, name: str, role: Role = "member") -> Someone:
    user = new_user(f"{name}@example.org", name, role, None)
    await control.app.state.services.state.record(lambda con: insert_user(con, user))
    return Someone(control, user.id, *(["manage"] if role == "admin" else []))


@pytest.fixture
async def ada(control) -> Someone:
    return await person(control, "ada")


@pytest.fixture
async def bo(control) -> Someone:
    return await person(control, "bo")


async def test_a_project_lives_and_dies_with_all_that_is_in_it(control, ada) -> None:
    project_id = await ada.project()
    path = f"/projects/{project_id}"
    project = (await ada.ask("GET", path))["project"]
    assert (project["name"], project["role"], project["version"]) == ("Refit", "maintainer", 1)
    changed = await ada.ask("PATCH", path, {"description": "Spring", "version": 1})
    assert changed["project"]["version"] == 2
    assert changed["project"]["name"] == "Refit"
    todo = await ada.todo(project_id, "Varnish", tags=["deck", "Deck"], status="in_progress")
    assert [tag["name"] for tag in todo["tags"]] == ["deck"]
    found = await ada.ask("GET", "/projects")
    assert found["total"] == 1
    assert found["projects"][0]["todos"]["in_progress"] == 1
    assert (await ada.ask("DELETE", path)) == {"deleted": project_id}
    for gone in (path, f"{path}/todos", f"/todos/{todo['id']}", f"/tags/{todo['tags'][0]['id']}"):
        await ada.refused("GET", gone, expect=404)


async def test_what_is_wrong_names_the_field_and_the_rule(ada) -> None:
    project_id = await ada.project()
    todos = f"/projects/{project_id}/todos"
    for body, param, words in (
        ({}, "title", "title is required"),
        ({"title": ""}, "title", "at least 1 character"),
        ({"title": "a\nb"}, "title", "no line breaks"),
        ({"title": "x" * 201}, "title", "at most 200 characters"),
        ({"title": "a", "status": "later"}, "status", "'backlog', 'todo'"),
        ({"title": "a", "dueOn": "31.1.2027"}, "dueOn", "a date such as 2027-01-31"),
        ({"title": "a", "dueOn": "2027-02-30"}, "dueOn", "a date such as 2027-01-31"),
        ({"title": "a", "colour": "red"}, "colour", "not a field"),
        ({"title": "a", "tags": ["ok", ""]}, "tags[1]", "at least 1 character"),
        ({"title": "a", "before": "x", "after": "y"}, "after", "exclude each other"),
        ({"title": "a", "before": str(uuid4())}, "before", "another todo of the same project"),
        ({"title": "a", "sprintId": str(uuid4())}, "sprintId", "a sprint of this project"),
        ({"title": "a", "assigneeId": str(uuid4())}, "assigneeId", "sees the project"),
    ):
        message, told = await ada.refused("POST", todos, body, expect=400)
        assert told == param, (body, message)
        assert words in message, (body, message)
    todo = await ada.todo(project_id, "a")
    for body, words in (
        ({}, "names no field"),
        ({"version": 1}, "names no field"),
        ({"title": None}, "title must not be null"),
    ):
        message, _ = await ada.refused("PATCH", f"/todos/{todo['id']}", body, expect=400)
        assert words in message
    message, param = await ada.refused(
        "POST",
        f"/projects/{project_id}/sprints",
        {"name": "s", "startsOn": "2027-02-01", "endsOn": "2027-01-01"},
        expect=400,
    )
    assert (param, message) == ("endsOn", "endsOn must not be before startsOn.")


async def test_a_stale_change_is_refused_and_one_without_a_version_is_made(ada) -> None:
    todo = await ada.todo(await ada.project(), "first")
    path = f"/todos/{todo['id']}"
    await ada.ask("PATCH", path, {"title": "second", "version": 1})
    message, param = await ada.refused("PATCH", path, {"title": "lost", "version": 1}, expect=409)
    assert param == "version"
    assert "its version is 2, not 1" in message
    await ada.refused("POST", f"{path}/move", {"status": "done", "version": 1}, expect=409)
    last = (await ada.ask("PATCH", path, {"body": "as it is"}))["todo"]
    assert (last["title"], last["body"], last["version"]) == ("second", "as it is", 3)


async def test_done_is_when_it_was_done(ada) -> None:
    todo = await ada.todo(await ada.project(), "a")
    assert todo["doneAt"] is None
    path = f"/todos/{todo['id']}"
    done = (await ada.ask("POST", f"{path}/move", {"status": "done"}))["todo"]
    again = (await ada.ask("PATCH", path, {"title": "b"}))["todo"]
    assert done["doneAt"] == again["doneAt"] is not None
    assert (await ada.ask("PATCH", path, {"status": "todo"}))["todo"]["doneAt"] is None


async def test_todos_stand_where_they_were_put(ada) -> None:
    project_id = await ada.project()
    ids = {title: (await ada.todo(project_id, title))["id"] for title in "abcd"}

    async def move(title: str, **body: str) -> str:
        await ada.ask("POST", f"/todos/{ids[title]}/move", body)
        return "".join(await ada.titles(project_id))

    assert await move("d", before=ids["a"]) == "dabc"
    assert await move("a", after=ids["c"], status="done") == "dbca"
    assert await move("d") == "bcad"
    assert await move("c", before=ids["d"]) == "bacd"
    await ada.refused("POST", f"/todos/{ids['a']}/move", {"before": ids["a"]}, expect=400)
    made = await ada.todo(project_id, "e", after=ids["b"])
    assert "".join(await ada.titles(project_id)) == "beacd"
    assert made["number"] == 5
    other = await ada.todo(await ada.project("Other"), "x")
    await ada.refused("POST", f"/todos/{ids['a']}/move", {"after": other["id"]}, expect=400)


async def test_moves_at_once_lose_nothing_and_each_is_beside_its_neighbour(ada) -> None:
    project_id = await ada.project()
    ids = [(await ada.todo(project_id, f"{n:02d}"))["id"] for n in range(20)]
    anchor = ids[0]
    await asyncio.gather(
        *(ada.ask("POST", f"/todos/{each}/move", {"after": anchor}) for each in ids[1:])
    )
    found = (await ada.ask("GET", f"/projects/{project_id}/todos", limit=500))["todos"]
    assert sorted(todo["id"] for todo in found) == sorted(ids)
    assert found[0]["id"] == anchor
    ranks = [todo["rank"] for todo in found]
    assert ranks == sorted(set(ranks))
    # Somebody deletes the neighbour meanwhile: the move is refused, the todo stays.
    await ada.ask("DELETE", f"/todos/{anchor}")
    await ada.refused("POST", f"/todos/{ids[1]}/move", {"after": anchor}, expect=400)
    assert len(await ada.titles(project_id)) == 19


async def test_lists_are_narrowed_and_paged(ada, bo) -> None:
    project_id = await ada.project()
    await ada.ask("POST", f"/projects/{project_id}/members", {"userId": bo.id}, expect=201)
    sprint = await ada.ask(
        "POST", f"/projects/{project_id}/sprints", {"name": "One", "status": "active"}, expect=201
    )
    sprint_id = sprint["sprint"]["id"]
    await ada.todo(project_id, "a", tags=["deck"], dueOn="2027-01-05")
    await ada.todo(project_id, "b", status="done", sprintId=sprint_id)
    await ada.todo(project_id, "c", assigneeId=bo.id, body="100% Hemp_rope")
    for query, expected in (
        ({}, "abc"),
        ({"status": "done"}, "b"),
        ({"sprintId": sprint_id}, "b"),
        ({"tag": "DECK"}, "a"),
        ({"assigneeId": bo.id}, "c"),
        ({"text": "hemp_"}, "c"),
        ({"text": "0%"}, "c"),
        ({"text": "%"}, "c"),
        ({"dueBefore": "2027-01-06"}, "a"),
        ({"dueBefore": "2027-01-05"}, ""),
    ):
        assert "".join(await ada.titles(project_id, **query)) == expected, query
    page = await ada.ask("GET", f"/projects/{project_id}/todos", limit=1, offset=1)
    assert (page["total"], [each["title"] for each in page["todos"]]) == (3, ["b"])
    await ada.refused("GET", f"/projects/{project_id}/todos", expect=400, limit=501)
    # A sprint goes, its todos stay.
    assert (await ada.ask("GET", f"/sprints/{sprint_id}"))["sprint"]["todosDone"] == 1
    await ada.ask("DELETE", f"/sprints/{sprint_id}")
    assert "".join(await ada.titles(project_id)) == "abc"


async def test_tags_are_one_by_name(ada) -> None:
    project_id = await ada.project()
    tags = f"/projects/{project_id}/tags"
    tag = (await ada.ask("POST", tags, {"name": "Deck", "color": "#0969DA"}, expect=201))["tag"]
    assert tag["color"] == "#0969da"
    await ada.refused("POST", tags, {"name": "deck"}, expect=409)
    todo = await ada.todo(project_id, "a", tags=["deck", "new"])
    assert [each["name"] for each in todo["tags"]] == ["Deck", "new"]
    await ada.refused("PATCH", f"/tags/{tag['id']}", {"name": "NEW"}, expect=409)
    renamed = (await ada.ask("PATCH", f"/tags/{tag['id']}", {"name": "hull"}))["tag"]
    assert (renamed["name"], renamed["todos"]) == ("hull", 1)
    await ada.ask("DELETE", f"/tags/{tag['id']}")
    shown = (await ada.ask("GET", f"/todos/{todo['id']}"))["todo"]
    assert [each["name"] for each in shown["tags"]] == ["new"]


async def test_a_project_is_not_there_for_others(ada, bo) -> None:
    project_id = await ada.project()
    todo = await ada.todo(project_id, "secret", tags=["t"])
    sprint = await ada.ask("POST", f"/projects/{project_id}/sprints", {"name": "s"}, expect=201)
    members = await ada.ask("GET", f"/projects/{project_id}/members")
    never = str(uuid4())
    for method, path, body in (
        ("GET", "/projects/{}", None),
        ("PATCH", "/projects/{}", {"name": "x"}),
        ("DELETE", "/projects/{}", None),
        ("GET", "/projects/{}/todos", None),
        ("POST", "/projects/{}/todos", {"title": "x"}),
        ("GET", "/projects/{}/members", None),
        ("POST", "/projects/{}/members", {"userId": bo.id}),
        ("GET", "/projects/{}/sprints", None),
        ("POST", "/projects/{}/sprints", {"name": "x"}),
        ("GET", "/projects/{}/tags", None),
        ("POST", "/projects/{}/tags", {"name": "x"}),
    ):
        there = await bo.refused(method, path.format(project_id), body, expect=404)
        assert there == await bo.refused(method, path.format(never), body, expect=404)
    for kind, record_id in (
        ("todos", todo["id"]),
        ("sprints", sprint["sprint"]["id"]),
        ("tags", todo["tags"][0]["id"]),
    ):
        for method, body in (
            ("GET", None),
            ("PATCH", {"name": "x", "title": "x"}),
            ("DELETE", None),
        ):
            sent = body and {"title" if kind == "todos" else "name": "x"}
            there = await bo.refused(method, f"/{kind}/{record_id}", sent, expect=404)
            assert there == await bo.refused(method, f"/{kind}/{never}", sent, expect=404)
    await bo.refused("POST", f"/todos/{todo['id']}/move", {}, expect=404)
    member = f"/members/{members['members'][0]['id']}"
    await bo.refused("PATCH", member, {"role": "viewer"}, expect=404)
    await bo.refused("DELETE", member, expect=404)
    assert (await bo.ask("GET", "/projects"))["total"] == 0


async def test_roles_bound_what_members_do(control, ada, bo) -> None:
    project_id = await ada.project()
    todo = await ada.todo(project_id, "a")
    path = f"/projects/{project_id}"
    member = (
        await ada.ask("POST", f"{path}/members", {"userId": bo.id, "role": "viewer"}, expect=201)
    )["member"]
    await ada.refused("POST", f"{path}/members", {"userId": bo.id}, expect=409)
    assert (await bo.ask("GET", path))["project"]["role"] == "viewer"
    for method, at, body in (
        ("POST", f"{path}/todos", {"title": "x"}),
        ("PATCH", f"/todos/{todo['id']}", {"title": "x"}),
        ("POST", f"/todos/{todo['id']}/move", {"status": "done"}),
        ("DELETE", f"/todos/{todo['id']}", None),
        ("POST", f"{path}/sprints", {"name": "x"}),
        ("POST", f"{path}/tags", {"name": "x"}),
    ):
        message, _ = await bo.refused(method, at, body, expect=403)
        assert "needs the role `contributor`" in message
    await ada.ask("PATCH", f"/members/{member['id']}", {"role": "contributor"})
    await bo.ask("PATCH", f"/todos/{todo['id']}", {"title": "b"})
    for method, at, body in (
        ("PATCH", path, {"name": "x"}),
        ("DELETE", path, None),
        ("POST", f"{path}/members", {"userId": ada.id}),
        ("PATCH", f"/members/{member['id']}", {"role": "maintainer"}),
    ):
        await bo.refused(method, at, body, expect=403)
    # The last maintainer stays one; a member may leave.
    own = (await ada.ask("GET", f"{path}/members"))["members"][0]
    assert own["userId"] == ada.id
    await ada.refused("PATCH", f"/members/{own['id']}", {"role": "viewer"}, expect=409)
    await ada.refused("DELETE", f"/members/{own['id']}", expect=409)
    await bo.ask("DELETE", f"/members/{member['id']}")
    await bo.refused("GET", path, expect=404)
    # Who manages the gateway sees everything, as a maintainer.
    boss = await person(control, "boss", "admin")
    assert (await boss.ask("GET", path))["project"]["role"] == "maintainer"


async def test_a_person_who_is_gone_is_nobodys_assignee(control, ada, bo) -> None:
    project_id = await ada.project()
    await ada.ask("POST", f"/projects/{project_id}/members", {"userId": bo.id}, expect=201)
    todo = await ada.todo(project_id, "a", assigneeId=bo.id)
    assert todo["assigneeName"] == "bo"
    await control.app.state.services.state.record(lambda con: delete_user(con, bo.id))
    shown = (await ada.ask("GET", f"/todos/{todo['id']}"))["todo"]
    assert (shown["assigneeId"], shown["assigneeName"]) == (None, None)
    assert (await ada.ask("GET", f"/projects/{project_id}/members"))["total"] == 1
    # And who may not sign in any more is not served, whatever the relay still believes.
    await bo.refused("GET", "/projects", expect=401)


async def test_nobody_is_not_served(control) -> None:
    for kind in ("anonymous", "key", "token"):
        answer = await control.client.get(
            f"{API}/projects", headers=control.as_principal(kind, None, ["manage"])
        )
        assert answer.status_code == 401, kind
