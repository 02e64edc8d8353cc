"""Sizes that a reader can hold: functions of at most 60 lines and five parameters, files of at most 500 lines.

A longer function, or one with more parameters, has its reason beside it: a comment `Long: ...` or
`Many parameters: ...` directly above it. Some kinds of functions need none, since something else reads their
signature; they are named below.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[3]
LINES_MAX = 60
PARAMETERS_MAX = 5
FILE_LINES_MAX = 500

# Files that are longer, and why.
LONG_FILES: dict[str, str] = {}

REASON_LONG = re.compile(r"\s*(#|//) Long: \S")
REASON_PARAMETERS = re.compile(r"\s*(#|//) Many parameters: \S")

RUST_FUNCTION = re.compile(
    r"^( *)(?:pub(?:\([a-z ]+\))? )?(?:const )?(?:async )?(?:unsafe )?fn (\w+)", re.MULTILINE
)
RUST_TESTS = re.compile(r"\n#\[cfg\(test\)\]\s*\nmod \w+ \{")
RUST_SELF = re.compile(r"(&\s*('\w+ )?)?(mut )?self\b(\s*:.*)?", re.DOTALL)
# Rows of the route table; functions of the extension, whose parameters are Python's.
RUST_ROW = re.compile(r"\) -> Route \{")
RUST_PYTHON = re.compile(r"#\[py(function|methods|o3)\b|#\[new\]")


class Function(NamedTuple):
    """A function: where it begins, its lines, its parameters without `self`, and the comments directly above it."""

    place: str
    name: str
    lines: int
    parameters: int
    above: list[str]

    def has(self, reason: re.Pattern[str]) -> bool:
        return any(reason.match(line) for line in self.above)

    def __str__(self) -> str:
        return f"{self.place} {self.name}: {self.lines} lines, {self.parameters} parameters"


def comments_above(lines: list[str], index: int) -> list[str]:
    """The comments and attributes directly above a line."""
    first = index
    while first > 0 and re.match(r"\s*(#|//)", lines[first - 1]):
        first -= 1
    return lines[first:index]


def is_command(file: Path, source: str) -> bool:
    """Typer reads the options of a command from its parameters, and its help from its docstring."""
    return "python/fairlead/cli" in file.as_posix() and bool(
        re.search(r"typer\.(Option|Argument)|\.(command|callback)\(|: (Json|Url|DataDir)\b", source)
    )


def is_route(source: str) -> bool:
    """FastAPI reads what a request has from the parameters of a route, and of what a route depends on."""
    return bool(re.search(r"\w+Dep\b|\b(Query|Path|Header|Depends)\(|router\.\w+\(", source))


def python_functions() -> Iterator[tuple[Path, str, Function]]:
    for file in sorted((ROOT / "python").rglob("*.py")):
        text = file.read_text("utf-8")
        lines = text.split("\n")
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            signature = "\n".join(lines[first - 1 : node.body[0].lineno - 1])
            begins = node.lineno
            if is_command(file, signature):
                documented = ast.get_docstring(node) is not None and len(node.body) > 1
                begins = node.body[1 if documented else 0].lineno
            named = [*node.args.posonlyargs, *node.args.args]
            is_method = bool(named) and named[0].arg in ("self", "cls")
            count = len(named) - is_method + len(node.args.kwonlyargs)
            if node.name == "__init__":
                # What a constructor takes by keyword alone is named where it is given.
                count -= len(node.args.kwonlyargs)
            function = Function(
                f"{file.relative_to(ROOT)}:{node.lineno}",
                node.name,
                (node.end_lineno or begins) - begins + 1,
                count,
                comments_above(lines, first - 1),
            )
            yield file, signature, function


def rust_files() -> list[Path]:
    """Every source file of the crates, without files of tests."""
    files = sorted((ROOT / "rust").glob("*/src/**/*.rs"))
    return [file for file in files if not re.search(r"(_tests|tests|fuzz)\.rs$", file.name)]


def closing(text: str, start: int, pair: str) -> int:
    """The index of the bracket that closes the one at `start`; `->` and `=>` close nothing."""
    depth = 0
    for index in range(start, len(text)):
        if text[index] == pair[0]:
            depth += 1
        elif text[index] == pair[1] and text[index - 1] not in "-=":
            depth -= 1
            if depth == 0:
                return index
    raise AssertionError(f"no {pair[1]} closes {text[start : start + 60]!r}")


def parts_of(inner: str) -> list[str]:
    """The pieces between the commas that stand in no bracket."""
    parts, depth = [""], 0
    for index, char in enumerate(inner):
        if char in "([{<":
            depth += 1
        elif char in ")]}" or (char == ">" and inner[index - 1] not in "-="):
            depth -= 1
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts if part.strip()]


def rust_functions() -> Iterator[tuple[str, Function]]:
    for file in rust_files():
        text = RUST_TESTS.split(file.read_text("utf-8"))[0]
        lines = text.split("\n")
        for found in RUST_FUNCTION.finditer(text):
            at = found.end()
            if text[at] == "<":
                at = closing(text, at, "<>") + 1
            end = closing(text, at, "()")
            inner = re.sub(r"//.*", "", text[at + 1 : end])
            parameters = [part for part in parts_of(inner) if not RUST_SELF.fullmatch(part)]
            index = text.count("\n", 0, found.start())
            last = next(
                (n for n in range(index, len(lines)) if lines[n] == f"{found[1]}}}"),
                index,
            )
            is_short = lines[index].rstrip().endswith(("}", ";"))
            function = Function(
                f"{file.relative_to(ROOT)}:{index + 1}",
                found[2],
                1 if is_short else last - index + 1,
                len(parameters),
                comments_above(lines, index),
            )
            yield text[end : end + 40], function


def listed(wrong: list[Function]) -> str:
    return f"{len(wrong)}:\n  " + "\n  ".join(map(str, wrong))


def test_no_python_function_is_longer_without_a_reason() -> None:
    wrong = [
        function
        for _, _, function in python_functions()
        if function.lines > LINES_MAX and not function.has(REASON_LONG)
    ]

    assert not wrong, listed(wrong)


def test_no_python_function_has_more_parameters_without_a_reason() -> None:
    wrong = [
        function
        for file, signature, function in python_functions()
        if function.parameters > PARAMETERS_MAX
        and not is_command(file, signature)
        and not is_route(signature)
        and not function.has(REASON_PARAMETERS)
    ]

    assert not wrong, listed(wrong)


def test_no_rust_function_is_longer_without_a_reason() -> None:
    wrong = [
        function
        for _, function in rust_functions()
        if function.lines > LINES_MAX and not function.has(REASON_LONG)
    ]

    assert not wrong, listed(wrong)


def test_no_rust_function_has_more_parameters_without_a_reason() -> None:
    wrong = [
        function
        for after, function in rust_functions()
        if function.parameters > PARAMETERS_MAX
        and not RUST_ROW.match(after)
        and not any(RUST_PYTHON.search(line) for line in function.above)
        and not function.has(REASON_PARAMETERS)
    ]

    assert not wrong, listed(wrong)


@pytest.mark.parametrize("language", ["rust", "python"])
def test_no_file_is_longer_without_a_reason(language: str) -> None:
    files = rust_files() if language == "rust" else sorted((ROOT / "python").rglob("*.py"))
    sizes = {str(file.relative_to(ROOT)): file.read_text("utf-8").count("\n") for file in files}
    wrong = {name: size for name, size in sizes.items() if size > FILE_LINES_MAX}

    assert wrong.keys() == {name for name in LONG_FILES if name.startswith(language)}, wrong
