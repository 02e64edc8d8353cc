"""Files that people keep by hand come back as they were: comments, order, odd spacing and all that is not ours."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.coding_tools.formats.change import (
    Change,
    UneditableFile,
    changed_document,
    inverse,
)
from fairlead.coding_tools.formats.document import Format, edit, parse

OURS = {
    "json": [
        Change(
            ("provider", "fairlead"), {"name": "fairlead", "options": {"baseURL": "http://x/v1"}}
        ),
        Change(("models", {"id": "ours"}), {"id": "ours", "on": True}),
        Change(("model",), "fairlead/m"),
    ],
    "toml": [
        Change(("model",), "m"),
        Change(("model_providers", "fairlead"), {"name": "fairlead", "base_url": "http://x/v1"}),
        Change(("entries", {"id": "ours"}), {"id": "ours", "url": "http://x"}),
        Change(("session", "model_id"), "m"),
    ],
    "yaml": [
        Change(("model",), "m"),
        Change(("providers", "fairlead"), {"url": "http://x/v1", "models": [{"id": "a"}]}),
        Change(("entries", {"name": "ours"}), {"name": "ours", "roles": ["chat"]}),
    ],
    "env": [
        Change(("FAIRLEAD_QWEN_KEY",), "sk-fl 'x' #1"),
        Change(("FAIRLEAD_URL",), "http://x/v1"),
    ],
}

blanks = st.sampled_from(["", " ", "  ", "\t"])
names = st.text("abcdefgh", min_size=1, max_size=4).map(lambda text: f"u_{text}")
comments = st.text(
    st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp"), blacklist_characters="*/"),
    max_size=12,
)
words = st.text(
    st.characters(
        blacklist_categories=("Cs", "Cc", "Zl", "Zp"), blacklist_characters="\ufeff\ufffe\uffff"
    ),
    max_size=8,
)


@st.composite
def json_files(draw: st.DrawFn, depth: int = 0) -> str:
    """An object as somebody may have laid it out."""
    members = []
    for name in draw(st.lists(names, unique=True, max_size=3)):
        nested = depth < 2 and draw(st.booleans())
        value = draw(json_files(depth + 1)) if nested else json.dumps(draw(words | st.integers()))
        members.append(f'"{name}"{draw(blanks)}:{draw(blanks)}{value}')
    gap = draw(
        st.sampled_from(
            [" ", "\n  ", "\n\n\t", f" // {draw(comments)}\n", f"/* {draw(comments)} */"]
        )
    )
    end = draw(st.sampled_from(["", " ", "\n", "\n\n", f" // {draw(comments)}\n"]))
    comma = "," if members and draw(st.booleans()) else ""
    return "{" + gap + f",{gap}".join(members) + comma + end + "}"


@st.composite
def toml_files(draw: st.DrawFn) -> str:
    lines = []
    for name in draw(st.lists(names, unique=True, max_size=3)):
        value = draw(
            st.sampled_from(
                [
                    "1",
                    "'a # b'",
                    '"""\nx = "1"\n# no\n"""',
                    "[1, # one\n 2]",
                    "{a = 1, b = '}'}",
                    "2026-01-01",
                ]
            )
        )
        lines.append(f"{draw(blanks)}{name}{draw(blanks)}={draw(blanks)}{value} # {draw(comments)}")
        lines += draw(st.lists(st.sampled_from(["", "  ", f"# {draw(comments)}"]), max_size=2))
    for name in draw(st.lists(names.map(lambda name: f"t_{name}"), unique=True, max_size=3)):
        head = draw(st.sampled_from([f"[{name}]", f"[[{name}]]", f'["{name}" . "a.b"]']))
        lines += [f"{head} # {draw(comments)}", f"  k = {json.dumps(draw(st.integers()))}"]
        lines += draw(st.lists(st.sampled_from(["", f"# {draw(comments)}"]), max_size=2))
    return "\n".join(lines) + draw(st.sampled_from(["", "\n", "\n\n"]))


@st.composite
def yaml_files(draw: st.DrawFn) -> str:
    lines = draw(st.lists(st.sampled_from(["# first", "", "---"]), max_size=1))
    for name in draw(st.lists(names, unique=True, min_size=1, max_size=4)):
        value = draw(
            st.sampled_from(
                [
                    " 1",
                    "  'a # b'",
                    ' "x"   # why',
                    " |\n  text\n  # no comment",
                    "\n    b:   2\n    c: [1, 2]",
                    "\n- 1\n-  x: 1\n   y: 2",
                    " {a: 1}",
                    " plain words",
                ]
            )
        )
        lines.append(f"{name}:{value}")
        lines += draw(st.lists(st.sampled_from(["", "# between", "  # set in"]), max_size=2))
    return "\n".join(lines) + draw(st.sampled_from(["", "\n", "\n\n"]))


@st.composite
def env_files(draw: st.DrawFn) -> str:
    lines = []
    for name in draw(st.lists(names, unique=True, max_size=4)):
        value = draw(
            st.sampled_from(["1", "'a # b'", '"two\nlines"', "plain  # why", "", " spaced "])
        )
        lines.append(f"{draw(st.sampled_from(['', 'export ', '  ']))}{name}{draw(blanks)}={value}")
        lines += draw(st.lists(st.sampled_from(["", "# between", "   "]), max_size=2))
    return "\n".join(lines) + draw(st.sampled_from(["", "\n", "\n\n"]))


def round_trip(kind: Format, text: str) -> None:
    """Applied, applied again, and taken back."""
    content, changes = text.encode(), OURS[kind]
    try:
        before = parse(kind, content)
        once = edit(kind, content, changes)
    except UneditableFile:
        # A text block that ends with the file, without an end of line: a line after it would give it one.
        assert kind == "yaml"
        assert not text.endswith("\n")
        return
    assert parse(kind, once) == changed_document(before, changes)
    assert edit(kind, once, changes) == once
    assert edit(kind, once, inverse(before, parse(kind, once), changes)) == content


@given(json_files())
@settings(max_examples=80, deadline=None)
def test_json_comes_back(text: str) -> None:
    round_trip("json", text)


@given(toml_files())
@settings(max_examples=80, deadline=None)
def test_toml_comes_back(text: str) -> None:
    round_trip("toml", text)


@given(yaml_files())
@settings(max_examples=80, deadline=None)
def test_yaml_comes_back(text: str) -> None:
    round_trip("yaml", text)


@pytest.mark.parametrize(
    "text",
    ["", "# mine\n", "- id: own\n  url: x # note\n", "- {id: own, url: x}\n# end\n"],
)
def test_a_document_that_is_a_list_comes_back(text: str) -> None:
    changes = [
        Change(({"id": each},), {"id": each, "url": "http://x/v1", "on": True})
        for each in ("a", "b")
    ]
    before = parse("yaml", text.encode())
    made = edit("yaml", text.encode(), changes)
    after = parse("yaml", made)
    assert [each["id"] for each in after][-2:] == ["a", "b"]
    assert edit("yaml", made, inverse(before, after, changes)).decode() == text


@given(env_files())
@settings(max_examples=80, deadline=None)
def test_env_comes_back(text: str) -> None:
    round_trip("env", text)


LAID_OUT = [
    (
        "json",
        '{\n    // mine\n    "a": 1, // why\n    "provider": {"x": {}}\n}\n',
        [Change(("provider", "fairlead"), 1), Change(("model",), "m")],
        '{\n    // mine\n    "a": 1, // why\n    "provider": {"x": {}, "fairlead": 1},\n    "model": "m"\n}\n',
    ),
    ("json", "", [Change(("env", "A"), "x")], '{\n  "env": {\n    "A": "x"\n  }\n}\n'),
    ("toml", "# top\n[t]\nk = 1 # one\n", [Change(("t", "k"), 2)], "# top\n[t]\nk = 2 # one\n"),
    ("yaml", "a:  1   # one\nb: 2\n", [Change(("a",), "x")], 'a:  "x"   # one\nb: 2\n'),
    ("env", "export A = 'x' # one\n", [Change(("A",), "y z")], "export A = 'y z' # one\n"),
]


@pytest.mark.parametrize(("kind", "before", "changes", "after"), LAID_OUT)
def test_a_value_changes_where_it_stands(
    kind: Format, before: str, changes: list[Change], after: str
) -> None:
    assert edit(kind, before.encode(), changes).decode() == after


REFUSED = [
    ("json", b"{", "line 1 is no valid JSON"),
    ("json", b'{"a": 1, "a": 2}', "a name twice"),
    ("json", b'{"provider": 3}', "provider is not a mapping"),
    ("json", b"[" * 200, "nested more than 100 deep"),
    ("json", b"\xff", "not UTF-8"),
    ("json", b" " * 1_048_577, "larger than"),
    ("toml", b"a = ", "no valid TOML"),
    ("toml", b"model_providers = { x = 1 }", "model_providers.fairlead cannot be set"),
    ("toml", b"entries = [{id = 'x'}]", "entries.ours cannot be set"),
    ("yaml", b"a: [", "no YAML that can be edited"),
    ("yaml", b"a: 1\n---\nb: 1\n", "no YAML that can be edited"),
    ("yaml", b"a: !!python/object:os.system x", "no YAML that can be edited"),
    ("yaml", b"a: &a 1\nb: [" + b"*a, " * 21 + b"1]", "more than 20 aliases"),
    ("yaml", b"providers:\n", "providers is not a mapping"),
    ("yaml", b"- 1\n", "the document is not a mapping"),
    ("env", b"what is this?\n", "no assignment"),
]


@pytest.mark.parametrize(("kind", "content", "reason"), REFUSED)
def test_what_cannot_be_edited_safely_is_refused(kind: Format, content: bytes, reason: str) -> None:
    with pytest.raises(UneditableFile, match=reason):
        edit(kind, content, OURS[kind])


def test_what_the_user_changed_afterwards_stays() -> None:
    changes = [Change(("env", "URL"), "ours"), Change(("env", "KEY"), "ours")]
    before = b'{\n  "env": {\n    "URL": "mine"\n  }\n}\n'
    written = edit("json", before, changes)
    present = edit("json", written, [Change(("env", "KEY"), "changed"), Change(("new",), 1)])
    taken_back = edit(
        "json", present, inverse(parse("json", before), parse("json", present), changes)
    )
    assert parse("json", taken_back) == {"env": {"URL": "mine", "KEY": "changed"}, "new": 1}
