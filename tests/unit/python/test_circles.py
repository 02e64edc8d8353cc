"""No circle of files inside a crate or a room, and pages that name what there is.

Between rooms and crates, test_arrows.py holds the arrows. Inside one, files form layers too: where two
files need each other, what both need belongs in a third, or the two are one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PYTHON = ROOT / "python"
CRATES = sorted(manifest.parent.name for manifest in (ROOT / "rust").glob("*/Cargo.toml"))

TEST_FILE = re.compile(r"(_tests|/tests)\.rs$")
RUST_PATH = re.compile(r"\b(crate|(?:super::)+super|super)((?:::\w+)+)")
RUST_BLOCK = re.compile(r"\b(crate|super)((?:::\w+)*)::\{([^;{}]*(?:\{[^{}]*\}[^;{}]*)*)\}")
REEXPORT = re.compile(
    r"^pub(?:\(crate\))? use (?:self::)?(\w+)((?:::\w+)*)(?:::\{([^}]*)\})?;", re.MULTILINE
)


def circles_of(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Every group of nodes that reach each other, each in alphabetical order (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(edges.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            group, stack[at:] = stack[at:], []
            if len(group) > 1:
                found.append(sorted(group))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found


def without_tests(text: str) -> str:
    """Rust source without comments and without its module of tests at the end."""
    return re.sub(r"//.*", "", re.split(r"\n#\[cfg\(test\)\]\s*\nmod", text)[0])


def rust_modules(crate: str) -> dict[str, Path]:
    """`a::b` to its file; the crate's own page is left out, for it names everything."""
    source = ROOT / "rust" / crate / "src"
    modules = {}
    for file in sorted(source.rglob("*.rs")):
        name = file.relative_to(source).with_suffix("").as_posix().removesuffix("/mod")
        if name != "lib" and not TEST_FILE.search(str(file)):
            modules[name.replace("/", "::")] = file
    return modules


def reexports(text: str) -> dict[str, str]:
    """What a folder's page hands on: a name to the path below the page that it comes from."""
    names = {}
    for first, rest, block in REEXPORT.findall(text):
        if block:
            items = [item.split(" as ")[-1].strip() for item in block.split(",")]
            names |= {item: f"{first}{rest}" for item in items if item and item != "self"}
        elif rest:
            parts = rest.removeprefix("::").split("::")
            names[parts[-1]] = "::".join((first, *parts[:-1]))
    return names


def rust_paths(module: str, is_page: bool, text: str) -> Iterator[list[str]]:
    """Every path from the crate's root that a module names; `super` is worked out."""
    here = module.split("::")
    above = here if is_page else here[:-1]
    named = [(root, rest.removeprefix("::")) for root, rest in RUST_PATH.findall(text)]
    named += [
        (root, f"{rest}::{item.strip()}".removeprefix("::"))
        for root, rest, block in RUST_BLOCK.findall(text)
        for item in re.split(r",(?![^{]*\})", block)
    ]
    for root, rest in named:
        parts = re.findall(r"\w+", rest.split("{")[0])
        if root == "crate":
            yield parts
        elif not is_page:
            yield [*above[: len(above) - (root.count("super") - 1)], *parts]


def rust_edges(crate: str) -> dict[str, set[str]]:
    modules = rust_modules(crate)
    texts = {name: without_tests(file.read_text("utf-8")) for name, file in modules.items()}
    handed = {name: reexports(texts[name]) for name in modules if modules[name].stem == "mod"}
    edges: dict[str, set[str]] = {}
    for name, file in modules.items():
        used = set()
        for parts in rust_paths(name, file.stem == "mod", texts[name]):
            for size in range(len(parts), 0, -1):
                target = "::".join(parts[:size])
                if target in modules:
                    step = parts[size] if size < len(parts) else ""
                    inner = handed.get(target, {}).get(step)
                    used.add(f"{target}::{inner}" if f"{target}::{inner}" in modules else target)
                    break
        # A folder's page and its files belong together: only arrows between files count.
        edges[name] = {
            other for other in used if other != name and not name.startswith(f"{other}::")
        }
    return edges


def python_modules() -> dict[str, Path]:
    modules = {}
    for file in sorted((PYTHON / "fairlead").rglob("*.py")):
        parts = file.relative_to(PYTHON).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return modules


def python_edges() -> dict[str, set[str]]:
    """Imports between files, those inside functions and for types alone too."""
    modules = python_modules()
    edges: dict[str, set[str]] = {}
    for name, file in modules.items():
        used: set[str] = set()
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                used |= {each.name for each in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for each in node.names:
                    inner = f"{node.module}.{each.name}"
                    used.add(inner if inner in modules else node.module)
        # A package's page may hand on what its files define.
        edges[name] = {
            other
            for other in used & modules.keys()
            if other != name and not name.startswith(f"{other}.")
        }
    return edges


@pytest.mark.parametrize("crate", CRATES)
def test_no_files_of_a_crate_need_each_other(crate: str) -> None:
    circles = circles_of(rust_edges(crate))

    assert not circles, "\n".join(" <-> ".join(circle) for circle in circles)


def test_no_files_of_a_room_need_each_other() -> None:
    circles = circles_of(python_edges())

    assert not circles, "\n".join(" <-> ".join(circle) for circle in circles)


def test_the_search_itself_finds_circles() -> None:
    assert circles_of({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    assert circles_of({"a": {"b"}, "b": {"c"}, "c": set()}) == []


def public_modules(text: str) -> Iterator[tuple[str, bool]]:
    """Every public module of a page, and whether a comment above it, or above its run of modules, gives the reason."""
    has_reason = False
    for line in text.splitlines():
        if found := re.match(r"pub mod (\w+);", line):
            yield found[1], has_reason
        else:
            has_reason = bool(re.match(r"// \S", line))


def test_a_public_module_has_a_reason() -> None:
    """A crate has one face: `pub use` in its `lib.rs`. A module is public where its name is read with its items."""
    wrong = [
        f"rust/{crate}/src/{file.relative_to(ROOT / 'rust' / crate / 'src')}: {name}"
        for crate in ("core", "cache", "context", "dialect")
        for file in sorted((ROOT / "rust" / crate / "src").rglob("*.rs"))
        for name, has_reason in public_modules(file.read_text("utf-8"))
        if not has_reason
    ]
    wrong += [
        f"rust/{crate}/src/lib.rs: {name}"
        for crate in ("engine", "listener", "page")
        for name, has_reason in public_modules(
            (ROOT / "rust" / crate / "src" / "lib.rs").read_text("utf-8")
        )
        if not has_reason
    ]

    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("crate", CRATES)
def test_the_title_page_of_a_crate_names_its_modules(crate: str) -> None:
    text = (ROOT / "rust" / crate / "src" / "lib.rs").read_text("utf-8")
    page = "\n".join(re.findall(r"^//!(.*)", text, re.MULTILINE))
    modules = re.findall(r"^(?:pub(?:\(crate\))? )?mod (\w+)", without_tests(text), re.MULTILINE)
    modules = [name for name in modules if not re.search(r"fuzz|growth|tests$|^_core$", name)]
    missing = [name for name in modules if not re.search(rf"`(?:\w+::)*{name}`", page)]

    assert not missing, f"rust/{crate}/src/lib.rs does not say what these are: {missing}"


def test_the_title_page_of_a_folder_names_its_files() -> None:
    missing = []
    for file in sorted((ROOT / "rust").glob("*/src/**/mod.rs")):
        text = file.read_text("utf-8")
        page = "\n".join(re.findall(r"^//!(.*)", text, re.MULTILINE))
        modules = re.findall(r"^(?:pub(?:\(\w+\))? )?mod (\w+);", without_tests(text), re.MULTILINE)
        missing += [
            f"{file.relative_to(ROOT)}: {name}"
            for name in modules
            if name != "tests" and not re.search(rf"`(?:\w+::)*{name}`", page)
        ]

    assert not missing, "\n".join(missing)


def test_the_map_names_every_room() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    rooms = [f"rust/{crate}" for crate in CRATES] + [
        folder.name
        for folder in sorted((PYTHON / "fairlead").iterdir())
        if (folder / "__init__.py").exists()
    ]
    missing = [room for room in rooms if not re.search(rf"\b{room}\b", page)]

    assert not missing, f"CONTRIBUTING.md has no place for {missing}"
