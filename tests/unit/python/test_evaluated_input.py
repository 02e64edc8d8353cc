"""Nothing that a caller sends is evaluated in control, except where `docs/explanation/evaluated-input.md` says so.

The test reads the code: each call that compiles an expression at run time, parses a schema, takes an archive out,
or runs code
is in the list below with why it is safe. A new one fails the test until somebody has bounded it and described it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3] / "python/fairlead"
PAGE: Final = ROOT.parents[1] / "docs/explanation/evaluated-input.md"

_RE: Final = {"compile", "match", "search", "fullmatch", "findall", "finditer", "sub", "split"}
_CODE: Final = {"eval", "exec", "compile", "__import__"}
_READERS: Final = (".from_string", ".strptime", "yaml.load")
_LIBRARIES: Final = {
    *(
        "fnmatch",
        "pickle",
        "marshal",
        "shelve",
        "jsonschema",
        "tarfile",
        "zipfile",
        "lxml",
        "croniter",
        "jmespath",
    ),
    *("jsonpath_ng", "lupa", "simpleeval", "asteval", "numexpr"),
}
# What a call is, by the file that makes it, and why it is safe.
SAFE: Final[dict[tuple[str, str], str]] = {
    ("control/answers.py", "re.compile"): "paths of the route table",
    ("control/audit.py", "re.compile"): "paths of the route table",
    ("control/gate.py", "re.compile"): "paths of the route table",
    ("control/peoples_fields.py", "re.compile"): "paths and names of the route table",
    ("dashboard/registry.py", "re.compile"): "paths of the console's pages",
    ("gateway/providers/apis.py", "import fnmatch"): "patterns of the catalogue files",
    ("gateway/providers/catalogue.py", "import fnmatch"): "patterns of the catalogue files",
    ("gateway/providers/facts_in_force.py", "import fnmatch"): "patterns of the catalogue files",
    (
        "gateway/providers/model_types.py",
        "re.compile",
    ): "words of our own list, when the module is loaded",
    ("gateway/fields.py", "re.compile"): "patterns of our own fields, when a class is made",
    (
        "store/blobs/bucket_blobs.py",
        "re.search",
    ): "names of ours, in a bucket's answer of bounded size",
    ("scrape/jobs/download.py", "import zipfile"): "writes an archive, reads none",
    ("scrape/page/schema.py", "import jsonschema"): "page worker, two seconds of processor time",
    ("scrape/document/archive.py", "import zipfile"): "page worker, bytes of each entry and of all",
    ("gateway/backups/archive.py", "import tarfile"): "writes an archive, reads none",
    (
        "gateway/backups/unpack.py",
        "import tarfile",
    ): "unpack process, bounded memory, entries and headers",
}


def _names(call: ast.Call) -> str:
    try:
        return ast.unparse(call.func)
    except ValueError:
        return ""


def _constant(node: ast.expr) -> bool:
    """Whether an expression is written in the code: a text, or texts and constants put together."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.JoinedStr):
        return all(
            isinstance(part, ast.Constant)
            or (isinstance(part, ast.FormattedValue) and _constant(part.value))
            for part in node.values
        )
    if isinstance(node, ast.BinOp):
        return _constant(node.left) and _constant(node.right)
    if isinstance(node, ast.Call):
        # A text made of constants, as `"|".join(get_args(Reason))`.
        return all(map(_constant, node.args)) and (
            not isinstance(node.func, ast.Attribute) or _constant(node.func.value)
        )
    # A constant of the module, or a type.
    return isinstance(node, ast.Name) and node.id.lstrip("_")[:1].isupper()


def _calls(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                if each.name.partition(".")[0] in _LIBRARIES:
                    yield f"import {each.name.partition('.')[0]}"
        elif isinstance(node, ast.ImportFrom):
            if (node.module or "").partition(".")[0] in _LIBRARIES:
                yield f"import {(node.module or '').partition('.')[0]}"
        elif isinstance(node, ast.Call):
            name = _names(node)
            is_dynamic = name.startswith("re.") and name[3:] in _RE and not _constant(node.args[0])
            if is_dynamic or name in _CODE or name.endswith(_READERS):
                yield name


def found() -> list[tuple[str, str]]:
    return sorted(
        {
            (path.relative_to(ROOT).as_posix(), call)
            for path in ROOT.rglob("*.py")
            for call in _calls(path)
        }
    )


def test_every_place_that_evaluates_is_known() -> None:
    places = found()
    assert len(places) >= len(SAFE)
    assert [each for each in places if each not in SAFE] == []
    assert [each for each in SAFE if each not in places] == []


# What evaluates in the page worker, and who may import it there.
APART: Final = {
    "fairlead.scrape.page.extract": {"extract", "select"},
    "fairlead.scrape.page.selection": {"extract_selected"},
    "fairlead.scrape.page.css": {"invalid_selectors", "records_of"},
    "fairlead.scrape.page.schema": {"judge"},
    "fairlead.scrape.page.patterns": {"judge_addresses"},
    "fairlead.scrape.page.sitemap": {"read_sitemap"},
    "fairlead.scrape.document.read": {"read_document"},
    "fairlead.gateway.backups.unpack": {"unpack"},
}
IMPORTERS: Final = {
    "scrape/page/worker.py",
    "scrape/page/extract.py",
    "scrape/page/selection.py",
    "scrape/document/read.py",
}


def test_what_evaluates_apart_is_called_nowhere_else() -> None:
    importers = set()
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.ImportFrom) or node.module not in APART:
                continue
            if APART[node.module] & {each.name for each in node.names}:
                importers.add(path.relative_to(ROOT).as_posix())
    assert importers == IMPORTERS


def test_the_page_names_every_library_and_the_tests() -> None:
    text = PAGE.read_text("utf-8")
    for place in ("scrape/page/worker.py", "gateway/backups/unpack.py", "store/backup.py"):
        assert place in text
        assert (ROOT / place).is_file()
    for line in text.split("## Tests")[1].split("`"):
        if line.startswith("tests/"):
            assert (ROOT.parents[1] / line).is_file(), line
