"""The arrows between the rooms: who may know whom.

Every room stands on a floor and imports from the floors below it only. Rooms of one floor do not
know each other: what they have in common is offered by the floor below. A type-only import is an
arrow too.
"""

from __future__ import annotations

import ast
import functools
import graphlib
import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "python" / "fairlead"

# From the ground up. Modules beside these folders (`errors`, `settings`, ...) and `_core` are the
# ground: every room may use them, they use none, and they have no cycle among themselves.
FLOORS: tuple[frozenset[str], ...] = (
    frozenset({"store"}),
    frozenset({"records"}),
    frozenset({"mcp"}),
    frozenset({"search"}),  # callers reach it through the gateway, and scraping through itself
    frozenset(
        {
            "gateway",
            "identity",
            "board",
            "scrape",
            "webhooks",
            "tasks",
            "usage",
            "dashboard",
            "standin",
            "agents",
        }
    ),
    frozenset({"coding_tools", "groups"}),
    frozenset({"control", "relay"}),
    frozenset({"serve"}),
    frozenset({"cli"}),
    frozenset({"__main__"}),
)

# Folders that belong to the ground, as the modules beside them do.
GROUND_FOLDERS = frozenset({"calls", "net", "process", "settings", "style", "text"})
# Crates from the ground up; each may depend on those before it.
CRATES = ("core", "cache", "dialect", "page", "context", "engine", "listener", "py")
# Who may bring a runtime, a socket or an interpreter with it.
CRATE_HOMES = {
    "pyo3": {"py"},
    "tokio": {"engine", "listener", "py"},
    "hyper": {"engine", "listener"},
    "hyper-util": {"engine", "listener"},
    "rustls": {"engine", "listener"},
}

# The environment is read once, in `settings`; a plane takes what the supervisor handed over.
ENVIRONMENT_READERS = {
    "settings/serve.py": "the one place where flags and environment become settings",
    "relay/application.py": "takes FAIRLEAD_RELAY_CONFIG",
    "serve/listener.py": "takes FAIRLEAD_RELAY_CONFIG and FAIRLEAD_LISTENER_CONFIG",
    "control/app.py": "takes FAIRLEAD_CONTROL_CONFIG",
    "coding_tools/acp/application.py": "takes FAIRLEAD_ACP_CONFIG",
    "store/prepare.py": "takes FAIRLEAD_CONTROL_CONFIG, before control starts",
    "standin/server.py": "Robyn is set up by environment only",
    "process/minimal_environment.py": "passes on the few variables that a program needs to run",
    "cli/app.py": "a shell asks by it what could follow",
    "net/proxy_variables.py": "names those that the gateway does not follow",
    "gateway/cloud_credentials/machine_variables.py": "variables of the clouds' SDKs, which the machine sets",
    "coding_tools/environment.py": "passes it on to the tool that `run` starts; knows a container by it",
}

GRAB_BAGS = re.compile(r"(^|_)(utils?|helpers?|common|managers?|misc)$")

# Distributions whose modules come with another one that is declared.
COME_WITH = {"psycopg_pool": "psycopg", "starlette": "fastapi", "pydantic_core": "pydantic"}


@dataclass(frozen=True, slots=True)
class Arrow:
    """`importer` (a file under python/) names `imported` (a dotted module) in line `line`."""

    importer: Path
    line: int
    imported: str

    def __str__(self) -> str:
        return f"{self.importer.relative_to(ROOT)}:{self.line} imports {self.imported}"


def sources() -> list[Path]:
    return sorted(p for p in PACKAGE.rglob("*.py*") if p.suffix in {".py", ".pyi"})


def module_of(file: Path) -> tuple[str, ...]:
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def imports_of(file: Path) -> Iterator[Arrow]:
    """Every module that `file` names in an import (relative ones resolved) or `import_module`."""
    package = module_of(file) if file.stem == "__init__" else module_of(file)[:-1]
    for node in ast.walk(ast.parse(file.read_text("utf-8"), str(file))):
        match node:
            case ast.Import(names=names):
                for name in names:
                    yield Arrow(file, node.lineno, name.name)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = package[: len(package) - level + 1] if level else ()
                origin = ".".join((*base, *(module.split(".") if module else ())))
                # `from fairlead import serve` names a room by what it imports
                for name in names if origin == "fairlead" else ():
                    yield Arrow(file, node.lineno, f"fairlead.{name.name}")
                if origin != "fairlead":
                    yield Arrow(file, node.lineno, origin)
            case ast.Call(
                func=ast.Attribute(attr="import_module"), args=[ast.Constant(value=str(name))]
            ):
                yield Arrow(file, node.lineno, name)


def room_of(module: tuple[str, ...] | list[str]) -> str | None:
    """A module's room: its folder, or its own name where it stands alone; None for the package."""
    return module[1] if len(module) > 1 else None


def floor_of(room: str | None) -> int:
    """0 is the ground. An unknown folder is an error: a new room is given a floor here first."""
    for number, rooms in enumerate(FLOORS, start=1):
        if room in rooms:
            return number
    if room is not None and room not in GROUND_FOLDERS and (PACKAGE / room).is_dir():
        pytest.fail(f"python/fairlead/{room} has no floor: give it one in {Path(__file__).name}")
    return 0


@functools.cache
def all_arrows() -> tuple[Arrow, ...]:
    """Those of every file; to parse them all takes a second of a core."""
    return tuple(arrow for file in sources() for arrow in imports_of(file))


def our_arrows() -> Iterator[tuple[str | None, str | None, Arrow]]:
    for arrow in all_arrows():
        target = arrow.imported.split(".")
        if target[0] == "fairlead":
            yield room_of(module_of(arrow.importer)), room_of(target), arrow


def nodes_where(word: re.Pattern[str], file: Path) -> Iterator[ast.AST]:
    """The nodes of a file; none of one that has the word nowhere, which need not be parsed."""
    text = file.read_text("utf-8")
    return ast.walk(ast.parse(text)) if word.search(text) else iter(())


def forbidden(here: str | None, there: str | None) -> bool:
    if here == there or floor_of(there) == floor_of(here) == 0:
        return False
    return floor_of(there) >= floor_of(here)


def test_every_import_points_down() -> None:
    wrong = [str(arrow) for here, there, arrow in our_arrows() if forbidden(here, there)]

    assert not wrong, "forbidden arrows:\n  " + "\n  ".join(wrong)


def test_the_rule_itself_tells_up_and_sideways_from_down() -> None:
    assert forbidden("store", "gateway")
    assert forbidden("gateway", "identity")
    assert forbidden("control", "relay")
    assert forbidden("errors", "store")
    assert not forbidden("gateway", "store")
    assert not forbidden("cli", "errors")
    assert not forbidden("store", "store")


def test_the_ground_has_no_cycle() -> None:
    graph: dict[str, set[str]] = {}
    for here, there, _ in our_arrows():
        if here and there and here != there and floor_of(here) == 0:
            graph.setdefault(here, set()).add(there)

    tuple(
        graphlib.TopologicalSorter(graph).static_order()
    )  # raises CycleError, which names the cycle


def test_the_engine_is_named_by_the_relay_alone() -> None:
    """Anyone may call the small functions of `_core`; the engine has one owner."""
    wrong = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in sources()
        if file.suffix == ".py" and room_of(module_of(file)) != "relay"
        for node in nodes_where(re.compile("Engine"), file)
        if isinstance(node, ast.ImportFrom)
        and node.module == "fairlead._core"
        and any(name.name == "Engine" for name in node.names)
    ]

    assert not wrong, f"the engine is made by python/fairlead/relay only: {wrong}"


def test_only_settings_reads_the_environment() -> None:
    wrong = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in sources()
        if file.relative_to(PACKAGE).as_posix() not in ENVIRONMENT_READERS
        and room_of(module_of(file)) != "serve"  # it hands the planes what they need
        for node in nodes_where(re.compile("env"), file)
        if (
            isinstance(node, ast.Attribute)
            and node.attr in {"environ", "environb", "getenv", "putenv"}
            and isinstance(node.value, ast.Name)
            and node.value.id == "os"
        )
        or (
            isinstance(node, ast.ImportFrom)
            and node.module == "os"
            and any(name.name in {"environ", "environb", "getenv"} for name in node.names)
        )
    ]

    assert not wrong, f"read it in settings/serve.py and pass it on: {wrong}"


def test_what_is_imported_is_declared() -> None:
    """A wheel must not rely on what a developer happens to have installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = [each for extra in project["optional-dependencies"].values() for each in extra]
    declared = {
        re.split(r"[<>=!~\[; ]", text, maxsplit=1)[0].lower()
        for text in (*project["dependencies"], *extras)
    }
    origins = importlib.metadata.packages_distributions()

    wrong = []
    for arrow in all_arrows():
        top = arrow.imported.split(".")[0]
        if top in {"fairlead", "__future__", "_typeshed"} or top in sys.stdlib_module_names:
            continue
        names = {name.lower() for name in origins.get(top, [top])}
        if not declared & (names | {COME_WITH.get(top, "")}):
            wrong.append(str(arrow))

    assert not wrong, "pyproject.toml does not declare:\n  " + "\n  ".join(wrong)


def test_crates_depend_downwards() -> None:
    wrong = []
    for number, crate in enumerate(CRATES):
        manifest = tomllib.loads((ROOT / "rust" / crate / "Cargo.toml").read_text("utf-8"))
        below = {f"fairlead-{name}" for name in CRATES[:number]}
        for section in ("dependencies", "dev-dependencies", "build-dependencies"):
            for name in manifest.get(section, {}):
                if name.startswith("fairlead-") and name not in below:
                    wrong.append(f"rust/{crate} {section}: {name} is not below it")
                if crate not in CRATE_HOMES.get(name, {crate}) and section == "dependencies":
                    wrong.append(f"rust/{crate} {section}: {name} belongs to {CRATE_HOMES[name]}")

    assert not wrong, "forbidden arrows:\n  " + "\n  ".join(wrong)


def test_every_crate_has_a_floor() -> None:
    crates = {manifest.parent.name for manifest in (ROOT / "rust").glob("*/Cargo.toml")}

    assert crates == set(CRATES)


def test_no_file_is_a_grab_bag() -> None:
    wrong = [
        str(file.relative_to(ROOT))
        for room in ("python", "rust", "tests", "benches")
        for file in (ROOT / room).rglob("*")
        if not {"target", "node_modules"}.intersection(file.parts)
        and GRAB_BAGS.search(file.stem.lower())
    ]

    assert not wrong, f"name each after the one noun it is about: {wrong}"
