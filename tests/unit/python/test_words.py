"""Names and comments that a newcomer can read: nouns for types, verbs that say what is done, comments that stand alone.

docs/explanation/glossary.md defines the words of fairlead, and docs/explanation/decisions/2026-11-26-plain-english.md
the style of documents and pages.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[3]

# Types are nouns of what they hold; these are participles and moods.
BANNED_TYPES = frozenset(
    {
        "Told",
        "Said",
        "Asked",
        "Kept",
        "Held",
        "Heard",
        "Brought",
        "Beside",
        "Wish",
        "Sheet",
        "Comes",
        "Deals",
        "Letter",
        "Twin",
        "Seen",
        "Sent",
        "Passed",
        "Begun",
        "Gone",
        "Known",
        "Ask",
        "Beat",
        "Entrant",
        "Here",
        "Joining",
        "Knobs",
        "Live",
        "Place",
        "Places",
        "Readings",
        "Rests",
        "Room",
        "Shelf",
        "Shelves",
        "Staged",
        "Standing",
        "Thought",
        "Wanted",
        "Whole",
    }
)
# Functions say what they do: to whom, of what.
BANNED_FUNCTIONS = frozenset(
    {"told", "tell", "tells", "work", "look", "looks", "said", "say", "lose", "doubt", "strike"}
    | {"enlist", "hand_over", "take_shelf", "room"}
)
# Locals, parameters and fields are nouns of what they hold: an answer, a message, a report.
BANNED_NAMES = frozenset({"told", "said", "heard", "asked", "kept", "held", "knobs", "entrant"})
# Private words for which the field has others: route, equal request, reported, cooldown, handoff, probe.
BANNED_WORDS = re.compile(
    r"(^|_)(doors?|twins?|told|untold|rests|resting|shelf|shelves|handover|knobs?|doubts?|strikes?|entrant)(_|$)"
)

# How a doc comment begins that says nothing where it is quoted alone.
BANNED_OPENINGS = re.compile(
    r"(the same\b|see (the|this) module|see `?\[|see above|as above|as before|likewise\b|ditto\b"
    r"|so (much|many|long)\b|nor\b|of (one|it|them|these|those)\b|and\b|or\b|else\b|too\b)",
    re.IGNORECASE,
)

# Docstrings of Python, where these make the reader look elsewhere for the subject. The command line is not held to it
# yet: its docstrings are the help that `fairlead --help` prints.
BANNED_PYTHON_OPENINGS = re.compile(
    r"(what|it|its|they|their|those|one who|so|nor|as above|the same)\b", re.IGNORECASE
)
# In Rust "What a limit counts." names its subject; "What is known so far." and "It waits." do not.
BANNED_RUST_OPENINGS = re.compile(
    r"(it|its|they|their|he|she|one who|whoever"
    r"|what (is|was|were|came|comes|becomes|became|goes|follows|stands|holds|takes|answers|happens))\b",
    re.IGNORECASE,
)
PYTHON_OPENINGS_EXEMPT = ("python/fairlead/cli/",)

RUST_TYPE = re.compile(
    r"^\s*(?:pub(?:\([a-z ]+\))? )?(?:struct|enum|trait|union|type) (\w+)", re.MULTILINE
)
PUBLIC_TYPE = re.compile(r"^pub (?:struct|enum|trait|union|type) (\w+)", re.MULTILINE)
# A macro's text, to the brace that closes it. What it makes stands in the file as if it were written there.
MACRO = re.compile(r"^macro_rules! (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
MACRO_PUBLIC_TYPE = re.compile(r"^\s+pub (?:struct|enum|trait|union|type) (\$?\w+)", re.MULTILINE)
RUST_FUNCTION = re.compile(
    r"^\s*(?:pub(?:\([a-z ]+\))? )?(?:const )?(?:async )?(?:unsafe )?fn (\w+)", re.MULTILINE
)

# Comments, texts and characters of Rust, in which a word is no name.
RUST_NO_CODE = re.compile(
    r"//[^\n]*|\bb?r(#*)\".*?\"\1|\"(?:\\.|[^\"\\])*\"|'(?:\\.[^']*|[^\\'])'", re.DOTALL
)
# Neither a member nor a call, and not where a function is made.
RUST_NAME = re.compile(r"(?<![\w.])(?<!fn )([a-z_]+)\b(?!\s*\()")

# Idioms that make documents and console pages hard to read for people who do not know the code. A hit is a sentence to
# rewrite in plain English, not a word to replace.
IDIOMS = (
    re.compile(r"\b(is|are|was|were|be|been|being|and|not|as) told\b|\btells? of\b", re.IGNORECASE),
    re.compile(r"\btold (as|by|in|to|of|once|at|with|so)\b", re.IGNORECASE),
    re.compile(r"\b(stands?|stood)\b(?!-| still\b| for\b| out\b| up\b)", re.IGNORECASE),
    re.compile(r"\bunder way\b", re.IGNORECASE),
    re.compile(r"\b(of|on) (its|their|our|your|his) own\b", re.IGNORECASE),
    re.compile(r"\b(goes|go|went|gone|going) on\b(?! to\b)", re.IGNORECASE),
    re.compile(
        r"\bis (there|kept|held|said|asked|heard|meant) (as|for|by|of|at|again|apart)\b",
        re.IGNORECASE,
    ),
    re.compile(r"\bnothing more\b|\bwithout a word\b|\bby itself\b|\bthe like\b", re.IGNORECASE),
    re.compile(
        r"(^|[.!?:] )(Of|What|Where|Whoever|Whose) "
        r"(?!do|does|did|is the|are the|you|I\b|if\b|to\b|next\b|it is\b)[a-z]"
    ),
    re.compile(
        r"\bwho(ever)? (asks|calls|manages|signs|waits|reads|sends|leaves)\b", re.IGNORECASE
    ),
    re.compile(r"\b(rests?|resting) (for|until|of|a connection|the connection)\b", re.IGNORECASE),
    re.compile(r"\bthoughts?\b", re.IGNORECASE),
)
# Values of Google's API and members of an agent's answer, which messages quote.
IDIOMS_ALLOWED = ("model_output, thought, function_call", '"thought"')
# Code in backticks is not prose, and a question is not a fronted clause.
NOT_PROSE = re.compile(r"`+[^`]*`+|\b(What|Where|Whose) [^.!?]*\?")
MESSAGE_MIN_CHARS = 24


class Doc(NamedTuple):
    """A doc comment: `file:line` of its first line, and its text."""

    place: str
    text: str


def rust_files() -> list[Path]:
    return sorted((ROOT / "rust").glob("*/src/**/*.rs"))


def python_files() -> list[Path]:
    return sorted((ROOT / "python").rglob("*.py"))


def end_of_code(file: Path, text: str) -> int:
    """Where the tests of a Rust file begin."""
    if re.search(r"tests?\.rs$", file.name):
        return 0
    tests = re.search(r"^#\[cfg\(test\)\]\s*\nmod ", text, re.MULTILINE)
    return tests.start() if tests else len(text)


def place_of(file: Path, text: str, start: int) -> str:
    return f"{file.relative_to(ROOT)}:{text.count(chr(10), 0, start) + 1}"


def rust_docs() -> Iterator[Doc]:
    for file in rust_files():
        block: list[str] = []
        for number, line in enumerate([*file.read_text("utf-8").split("\n"), ""], start=1):
            comment = re.match(r"\s*//[/!] ?(.*)", line)
            if comment:
                block.append(comment[1])
            elif block:
                yield Doc(f"{file.relative_to(ROOT)}:{number - len(block)}", "\n".join(block))
                block = []


def python_docs() -> Iterator[Doc]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for file in python_files():
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, kinds) and (text := ast.get_docstring(node)):
                line = getattr(node, "lineno", 1)
                yield Doc(f"{file.relative_to(ROOT)}:{line}", text)


def types_of_macros(text: str) -> Iterator[str]:
    """Public types that the macros of a file make: by their own name, or by the first word of each call."""
    for macro, body in MACRO.findall(text):
        for name in MACRO_PUBLIC_TYPE.findall(body):
            if name.startswith("$"):
                yield from re.findall(rf"^\s*{macro}!\s*[({{\[]\s*(\w+)", text, re.MULTILINE)
            else:
                yield name


def listed(wrong: list[str]) -> str:
    return f"{len(wrong)}:\n  " + "\n  ".join(wrong)


def test_types_are_nouns_of_what_they_hold() -> None:
    wrong = []
    for file in rust_files():
        text = file.read_text("utf-8")
        wrong += [
            f"{place_of(file, text, found.start(1))} {found[1]}"
            for found in RUST_TYPE.finditer(text)
            if found[1] in BANNED_TYPES
        ]
        wrong += [
            f"{file.relative_to(ROOT)} {name}"
            for name in types_of_macros(text)
            if name in BANNED_TYPES
        ]
    for file in python_files():
        wrong += [
            f"{file.relative_to(ROOT)}:{node.lineno} {node.name}"
            for node in ast.walk(ast.parse(file.read_text("utf-8")))
            if isinstance(node, ast.ClassDef) and node.name.lstrip("_") in BANNED_TYPES
        ]

    assert not wrong, listed(wrong)


def test_types_made_by_macros_are_seen() -> None:
    text = (
        "macro_rules! both {\n    ($name:ident) => {\n        pub struct $name;\n"
        "        pub enum Kind {}\n    };\n}\nboth!(Told);\n"
    )

    assert list(types_of_macros(text)) == ["Told", "Kind"]
    assert "ErrorKind" in types_of_macros((ROOT / "rust/core/src/error.rs").read_text("utf-8"))


def test_functions_say_what_they_do() -> None:
    wrong = []
    for file in rust_files():
        text = file.read_text("utf-8")
        wrong += [
            f"{place_of(file, text, found.start(1))} fn {found[1]}"
            for found in RUST_FUNCTION.finditer(text)
            if found[1] in BANNED_FUNCTIONS
            or (BANNED_WORDS.search(found[1]) and found.start() < end_of_code(file, text))
        ]
    for file in python_files():
        wrong += [
            f"{file.relative_to(ROOT)}:{node.lineno} def {node.name}"
            for node in ast.walk(ast.parse(file.read_text("utf-8")))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and (
                node.name.lstrip("_") in BANNED_FUNCTIONS
                or BANNED_WORDS.search(node.name) is not None
            )
        ]

    assert not wrong, listed(wrong)


def rust_names(text: str) -> Iterator[re.Match[str]]:
    """The names of locals, parameters and fields in a text of Rust, each wherever it stands."""
    blank = RUST_NO_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    return RUST_NAME.finditer(blank)


def test_names_in_comments_and_texts_are_no_locals() -> None:
    text = 'let told = heard("said"); // said\nfn said() {}\none.heard = r#"told"#;'

    assert {found[1] for found in rust_names(text)} & BANNED_NAMES == {"told"}


def test_names_in_rust_are_nouns_of_what_they_hold() -> None:
    wrong = []
    for file in sorted((ROOT / "rust").glob("*/**/*.rs")):
        text = file.read_text("utf-8")
        wrong += [
            f"{place_of(file, text, found.start(1))} {found[1]}"
            for found in (*rust_names(text), *RUST_FUNCTION.finditer(text))
            if found[1] in BANNED_NAMES
        ]

    assert not wrong, listed(wrong)


def python_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The names that Python makes, each with its line: functions, parameters, locals, fields and attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name):
                yield node.lineno, name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name
            case ast.MatchMapping(rest=str(name)) | ast.ExceptHandler(name=str(name)):
                yield node.lineno, name
            case ast.alias(asname=str(name)):
                yield node.lineno, name


def test_every_kind_of_name_in_python_is_seen() -> None:
    tree = ast.parse(
        "from a import b as c1\n"
        "def f1(p1, *p2, k=kept, **p3):\n"
        "    v1, self.v2 = given(said=1), [v3 for v3 in asked]\n"
        "    try: (v4 := 'told')\n"
        "    except E as v5: pass\n"
        "    match one:\n"
        "        case {**v6}: pass\n"
        "        case [v7, *v8]: pass\n"
        "class T:\n    v9: int\n"
    )

    made = {name for _, name in python_names(tree)}

    assert made == {"c1", "f1", "p1", "p2", "p3", "k", *(f"v{number}" for number in range(1, 10))}


def test_names_in_python_are_nouns_of_what_they_hold() -> None:
    wrong = []
    for file in python_files():
        place = str(file.relative_to(ROOT))
        wrong += [
            f"{place}:{line} {name}"
            for line, name in python_names(ast.parse(file.read_text("utf-8")))
            if name.lstrip("_") in BANNED_NAMES
        ]

    assert not wrong, listed(wrong)


def test_a_public_type_has_its_name_alone_in_its_crate() -> None:
    wrong = []
    for crate in sorted((ROOT / "rust").iterdir()):
        texts = [file.read_text("utf-8") for file in crate.glob("src/**/*.rs")]
        names = Counter(
            name for text in texts for name in (*PUBLIC_TYPE.findall(text), *types_of_macros(text))
        )
        wrong += [f"rust/{crate.name}: {name} x{n}" for name, n in names.items() if n > 1]

    assert not wrong, listed(wrong)


def test_a_doc_comment_can_be_read_alone() -> None:
    wrong = [
        f"{doc.place} {doc.text.splitlines()[0]}"
        for doc in (*rust_docs(), *python_docs())
        if BANNED_OPENINGS.match(doc.text)
    ]

    assert not wrong, listed(wrong)


def test_a_doc_comment_names_its_subject() -> None:
    wrong = [
        f"{doc.place} {doc.text.splitlines()[0]}"
        for doc in rust_docs()
        if BANNED_RUST_OPENINGS.match(doc.text)
    ]

    assert not wrong, listed(wrong)


def test_a_docstring_names_its_subject() -> None:
    wrong = [
        f"{doc.place} {doc.text.splitlines()[0]}"
        for doc in python_docs()
        if BANNED_PYTHON_OPENINGS.match(doc.text)
        and not doc.place.startswith(PYTHON_OPENINGS_EXEMPT)
    ]

    assert not wrong, listed(wrong)


def prose_of_document(text: str) -> Iterator[tuple[int, str]]:
    """Lines of a Markdown page with their numbers, without blocks of code and code in a line."""
    fenced = False
    for number, line in enumerate(text.split("\n"), start=1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield number, re.sub(r"`[^`]*`", "", line)


def prose_of_page(text: str) -> Iterator[tuple[int, str]]:
    """Lines of a template with their numbers, without its tags and statements."""
    for number, line in enumerate(text.split("\n"), start=1):
        yield number, re.sub(r"\{[%#{].*?[%#}]\}|<[^>]*>", " ", line)


def has_idiom(line: str) -> bool:
    for allowed in IDIOMS_ALLOWED:
        line = line.replace(allowed, "")
    return any(idiom.search(line) for idiom in IDIOMS)


def test_idioms_in_prose_are_seen_and_code_is_not() -> None:
    page = "It goes on.\n```\nIt goes on.\n```\n    It goes on.\nUse `goes on`. You can go on to the next page.\n"

    assert [number for number, line in prose_of_document(page) if has_idiom(line)] == [1]
    assert [
        number
        for number, line in prose_of_page("<p>Of those\n{{ of_its_own }}\n<b>is told</b>")
        if has_idiom(line)
    ] == [3]


def test_documents_are_plain_english() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
    wrong = [
        f"{page.relative_to(ROOT)}:{number} {line.strip()[:120]}"
        for page in (*pages, *sorted((ROOT / "docs").rglob("*.md")))
        for number, line in prose_of_document(page.read_text("utf-8"))
        if has_idiom(line)
    ]

    assert not wrong, listed(wrong)


def prose_of_rust(text: str) -> Iterator[tuple[int, str]]:
    """Comments and messages of a Rust file, with their line numbers."""
    for number, line in enumerate(text.split("\n"), start=1):
        if comment := re.search(r"(?:^|\s)//[/!]?\s?(.*)", line):
            yield number, NOT_PROSE.sub("", comment[1])
        else:
            for message in re.findall(r'"((?:[^"\\]|\\.)*)"', line):
                if len(message) >= MESSAGE_MIN_CHARS:
                    yield number, NOT_PROSE.sub("", message)


def prose_of_python(text: str) -> Iterator[tuple[int, str]]:
    """Comments, docstrings and messages of a Python file, with their line numbers."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_message = token.type == tokenize.STRING and len(token.string) > MESSAGE_MIN_CHARS
        if token.type == tokenize.COMMENT or is_message:
            for offset, line in enumerate(token.string.split("\n")):
                yield token.start[0] + offset, NOT_PROSE.sub("", line.strip("#\"' "))


def test_prose_in_code_is_seen_and_names_are_not() -> None:
    rust = 'let goes_on = 1; // It goes on.\nfail("A request that goes on for ever.");\n/// See `goes on`.'
    python = 'goes_on = 1  # It goes on.\nraise E("A request that goes on for ever.")\n'

    assert [number for number, line in prose_of_rust(rust) if has_idiom(line)] == [1, 2]
    assert [number for number, line in prose_of_python(python) if has_idiom(line)] == [1, 2]


def test_comments_and_messages_are_plain_english() -> None:
    examples = re.compile(r"(^|/)(tests?|examples)/|_?tests?\.rs$")
    files = [(file, prose_of_rust) for file in rust_files()]
    files += [(file, prose_of_python) for file in python_files()]
    wrong = [
        f"{file.relative_to(ROOT)}:{number} {line.strip()[:120]}"
        for file, prose in files
        if not examples.search(str(file.relative_to(ROOT)))
        for number, line in prose(file.read_text("utf-8"))
        if has_idiom(line)
    ]

    assert not wrong, listed(wrong)


def test_pages_of_the_console_are_plain_english() -> None:
    wrong = [
        f"{page.relative_to(ROOT)}:{number} {line.strip()[:120]}"
        for page in sorted((ROOT / "python").rglob("*.html"))
        for number, line in prose_of_page(page.read_text("utf-8"))
        if has_idiom(line)
    ]

    assert not wrong, listed(wrong)
