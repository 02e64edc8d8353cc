"""Nothing is imported before it is needed: what a process starts with is what an idle gateway pays for."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module

import pytest
from fastapi import APIRouter

from fairlead import _core
from fairlead.control.openapi import shape
from fairlead.control.router_loader import answers, import_routers
from fairlead.control.routers import ROUTERS
from fairlead.control.tasks import TASKS

APPLICATION = ("fastapi", "starlette", "duckdb", "polars", "pyarrow", "httpx", "jinja2")
NOT_IN_IDLE_CONTROL = (
    *("polars", "pyarrow", "numpy", "jinja2", "selectolax", "lxml", "playwright"),
    *("httpx", "authlib", "joserfc", "typer", "pydantic_settings", "opentelemetry.sdk"),
    "fairlead.gateway.responses.background",
)
# Modules of tasks that begin with the start, whatever is stored.
AT_START = sorted({entry.module for entry in TASKS if entry.begins_with is None})
ROOMS = (
    "fairlead.board",
    "fairlead.scrape",
    "fairlead.tasks",
    "fairlead.agents",
    "fairlead.usage.ingestion.ingest",
)


def imported(statement: str) -> set[str]:
    """The names of all modules that a new interpreter has after a statement."""
    script = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.rpartition("\n")[0].rpartition("\n")[2].split())


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        (
            "import fairlead.serve.supervisor",
            (*APPLICATION, "pydantic", "pydantic_settings", "typer", "rich", "granian"),
        ),
        ("import fairlead.serve.plane", (*APPLICATION, "pydantic")),
        ("import fairlead.relay", (*APPLICATION, "pydantic")),
        ("import fairlead.serve.listener", (*APPLICATION, "pydantic", "granian", "asyncio")),
        (
            "import fairlead.cli.app",
            (*APPLICATION, "pydantic", "fairlead.settings", "fairlead._core"),
        ),
        (
            "from fairlead.cli import bar_imports; bar_imports(); import fairlead.cli.instance",
            ("click", "pygments", "rich.progress"),
        ),
        ("import fairlead.store.prepare", ("fastapi", "polars", "structlog", "pydantic")),
        ("import fairlead.control.app", (*NOT_IN_IDLE_CONTROL, *ROOMS)),
        (f"import {', '.join(AT_START)}", (*NOT_IN_IDLE_CONTROL, *ROOMS)),
        (
            "from fairlead.serve.plane import bar_imports; bar_imports(); import fairlead.control.app",
            ("rich.console", "rich.traceback", "pygments.lexers", "click", "attr"),
        ),
    ],
)
def test_a_process_starts_without(statement: str, unwanted: tuple[str, ...]) -> None:
    assert imported(statement) & set(unwanted) == set()


def paths_of(routers: tuple[APIRouter, ...]) -> set[str]:
    return {str(getattr(route, "path", "")) for router in routers for route in router.routes}


def test_each_router_is_imported_for_each_of_its_paths() -> None:
    for entry in ROUTERS:
        paths = {re.sub(r"\{[^}]*\}", "x", path) for path in paths_of(import_routers(entry))}
        assert paths, entry.module
        assert {path for path in paths if not answers(entry, path)} == set(), entry.module


def test_no_router_is_imported_for_what_only_others_answer() -> None:
    """But for the few that share a beginning: their modules are small."""
    served = {
        entry.module: {shape(path) for path in paths_of(import_routers(entry))} for entry in ROUTERS
    }
    for route in _core.routes():
        path = re.sub(r"\{[^}]*\}", "x", str(route["path"]))
        modules = [entry.module for entry in ROUTERS if answers(entry, path)]
        assert len(modules) <= 3, (path, modules)
        if route["answered_by"] == "relay":
            continue
        if path == "/api/openapi.json":
            assert modules == []
            continue
        assert any(shape(str(route["path"]).replace("{*", "{")) in served[each] for each in modules)


def test_every_task_is_one_of_its_module() -> None:
    for entry in TASKS:
        for module in entry.modules:
            import_module(module)
        names = [task.name for task in import_module(entry.module).TASKS]
        assert entry.name in names


def test_every_task_of_a_module_is_started() -> None:
    """A task that the table does not name would never run, and nobody would be told."""
    started = {entry.name for entry in TASKS}
    listed = {task.name for entry in TASKS for task in import_module(entry.module).TASKS}
    assert listed - started == set()
