"""The order of todos in the store: whatever is made, moved and deleted, in whatever order, it is the one of a plain
list to which the same was done; also when ranks run out and a project is ranked anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead.board import todos
from fairlead.board.fields import NewProject, NewTodo, TodoMove
from fairlead.board.projects import create_project
from fairlead.board.todos import TodoFilter, create_todo, delete_todo, list_todos, move_todo
from fairlead.records.people import Person
from fairlead.store.prepare import MIGRATIONS

WHO = Person("p", "Ada", "ada@example.org", manages=False)

# Where: -1 is the end, an even number before, an odd one after the todo in that place.
PLACES = st.integers(-1, 30)
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("create"), st.just(0), PLACES),
        st.tuples(st.just("move"), st.integers(0, 14), PLACES),
        st.tuples(st.just("delete"), st.integers(0, 14), st.just(-1)),
    ),
    max_size=40,
)


@pytest.fixture(scope="module")
def store() -> Iterator[duckdb.DuckDBPyConnection]:
    con = duckdb.connect()
    for step in sorted((MIGRATIONS / "state").glob("*.sql")):
        con.execute(step.read_text("utf-8"))
    yield con
    con.close()


@contextmanager
def undone(con: duckdb.DuckDBPyConnection) -> Iterator[None]:
    con.begin()
    try:
        yield
    finally:
        con.rollback()


def place_of(order: list[str], place: int) -> tuple[dict[str, str], int]:
    """What a body says, and where a plain list would have it."""
    if place < 0 or not order:
        return {}, len(order)
    at = place // 2 % len(order)
    return ({"before": order[at]}, at) if place % 2 == 0 else ({"after": order[at]}, at + 1)


def check(store, acts: list[tuple[str, int, int]]) -> None:
    with undone(store):
        project_id = create_project(store, WHO, NewProject(name="x")).id
        order: list[str] = []
        for act, which, place in acts:
            if act == "create":
                said, at = place_of(order, place)
                body = NewTodo.model_validate({"title": "t", **said})
                order.insert(at, create_todo(store, WHO, project_id, body).id)
            elif order and act == "delete":
                delete_todo(store, WHO, order.pop(which % len(order)))
            elif order:
                moved = order.pop(which % len(order))
                said, at = place_of(order, place)
                order.insert(at, moved)
                move_todo(store, WHO, moved, TodoMove.model_validate(said))
        found = list_todos(store, WHO, project_id, TodoFilter(), 500, 0).todos
        assert [todo.id for todo in found] == order
        ranks = [todo.rank for todo in found]
        assert ranks == sorted(set(ranks))
        assert all(len(rank) <= todos.RANK_MAX for rank in ranks)


@pytest.fixture(params=[6, 40])
def rank_max(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With six digits a project is ranked anew at nearly every move into a gap."""
    monkeypatch.setattr(todos, "RANK_MAX", request.param)


LAX = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
}


@settings(max_examples=8, **LAX)
@given(acts=ACTS)
def test_the_store_keeps_the_order_that_a_list_would(store, rank_max, acts) -> None:
    check(store, acts)


@pytest.mark.slow
@settings(max_examples=150, **LAX)
@given(acts=ACTS)
def test_the_store_keeps_the_order_for_longer(store, rank_max, acts) -> None:
    check(store, acts)


def test_a_gap_that_is_used_up_is_made_anew_without_a_change_of_any_todo(
    store, monkeypatch
) -> None:
    monkeypatch.setattr(todos, "RANK_MAX", 10)
    with undone(store):
        project_id = create_project(store, WHO, NewProject(name="x")).id
        made = [
            create_todo(store, WHO, project_id, NewTodo(title=title)).id
            for title in ("a", "b", "c")
        ]
        last = made[2]
        for _ in range(40):
            # The one that was last goes between the first and the second, over and over.
            move_todo(store, WHO, last, TodoMove(after=made[0]))
            order = [
                todo.id for todo in list_todos(store, WHO, project_id, TodoFilter(), 9, 0).todos
            ]
            assert order[:2] == [made[0], last]
            last = order[2]
        first = list_todos(store, WHO, project_id, TodoFilter(), 9, 0).todos[0]
        assert first.version == 1
        assert len(first.rank) <= todos.RANK_MAX
