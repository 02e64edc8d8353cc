"""`fairlead chat` and `fairlead repl` with a real gateway and a provider that says what a test wants."""

from __future__ import annotations

import base64
import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command import Completed, fairlead, sentence
from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane
from tests.support.terminal import Terminal
from tests.support.upstream import (
    DONE,
    SSE_HEAD,
    Gate,
    chunk,
    completion,
    delta,
    finish,
    reply,
    stream,
)

HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202eevil\u2066"
Run = Callable[..., Completed]


def said(*texts: str) -> list[object]:
    """A streamed answer of these pieces."""
    return stream(*(delta(text) for text in texts), finish(), DONE)


@pytest.fixture
def run(gateway: Gateway) -> Run:
    return lambda *arguments, **more: fairlead(
        *arguments, FAIRLEAD_DATA_DIR=str(gateway.data_dir), **more
    )


def test_an_answer_is_printed_as_it_comes(gateway: Gateway, lane: Lane) -> None:
    gate = Gate()
    lane.upstream.script(
        [
            SSE_HEAD,
            chunk(delta("first")),
            gate,
            chunk(delta(" second")),
            chunk(finish() + DONE),
            b"0\r\n\r\n",
        ]
    )
    with Terminal(
        "chat", "-m", lane.model, "hi", FAIRLEAD_DATA_DIR=str(gateway.data_dir)
    ) as terminal:
        terminal.wait_for("first")
        assert "second" not in terminal.shown
        gate.open()
        assert terminal.end() == 0
    assert terminal.shown == "first second\r\n"


def test_an_answer_that_is_ended_is_code_130(gateway: Gateway, lane: Lane) -> None:
    gate = Gate()
    lane.upstream.script([SSE_HEAD, chunk(delta("first")), gate])
    with Terminal(
        "chat", "-m", lane.model, "hi", FAIRLEAD_DATA_DIR=str(gateway.data_dir)
    ) as terminal:
        terminal.wait_for("first")
        terminal.type("\x03")
        assert terminal.end() == 130
    gate.open()
    assert "Traceback" not in terminal.shown


def test_what_a_model_says_does_not_reach_the_terminal_raw(run: Run, lane: Lane) -> None:
    lane.upstream.script(said(HOSTILE, "\tx\n", "y" * 1_000_000))
    ended = run("chat", "-m", lane.model, "hi")
    assert ended.returncode == 0
    assert (
        ended.stdout
        == r"\x1b]0;owned\x07\x1b[2J\u202eevil\u2066" + "\tx\n" + "y" * 1_000_000 + "\n"
    )


def test_the_question_comes_from_standard_input(run: Run, lane: Lane) -> None:
    lane.upstream.script(said("yes"))
    assert run("chat", typed="is it?\n", FAIRLEAD_MODEL=lane.model).stdout == "yes\n"
    asked = lane.upstream.last.json()
    assert asked["messages"] == [{"role": "user", "content": "is it?\n"}]
    assert "tools" not in asked


def test_files_and_pictures_go_along(run: Run, lane: Lane, tmp_path: Path) -> None:
    picture, notes = tmp_path / "a.png", tmp_path / "notes.md"
    picture.write_bytes(b"\x89PNG\r\n")
    notes.write_text("remember the milk")
    lane.upstream.script(said("ok"))
    arguments = ("--file", str(notes), "--file", str(picture), "--system", "be brief")
    assert run("chat", "-m", lane.model, *arguments, "look").returncode == 0
    system, user = lane.upstream.last.json()["messages"]
    assert system == {"role": "system", "content": "be brief"}
    text, image, question = user["content"]
    assert "remember the milk" in text["text"]
    assert (
        image["image_url"]["url"]
        == f"data:image/png;base64,{base64.b64encode(picture.read_bytes()).decode()}"
    )
    assert question == {"type": "text", "text": "look"}
    (tmp_path / "b.bin").write_bytes(b"\xff\xfe")
    assert "neither text" in sentence(
        run("chat", "-m", lane.model, "-f", str(tmp_path / "b.bin"), "x"), 1
    )
    assert "cannot be read" in sentence(run("chat", "-m", lane.model, "-f", str(tmp_path), "x"), 1)


def test_json_is_the_answer_of_the_api(run: Run, lane: Lane) -> None:
    lane.upstream.script(reply(completion(f"hello {HOSTILE}")))
    ended = run("chat", "-m", lane.model, "--json", "hi")
    message = json.loads(ended.stdout)["choices"][0]["message"]["content"]
    assert message == f"hello {HOSTILE}"
    assert "\x1b" not in ended.stdout
    assert "\u202e" not in ended.stdout


def test_failures_have_an_exit_code_and_a_sentence(run: Run, lane: Lane) -> None:
    assert "--model" in sentence(run("chat", "hi"), 1)
    assert "empty" in sentence(run("chat", "-m", lane.model, typed=" \n"), 1)
    assert "no-such" in sentence(run("chat", "-m", "no-such/model", "hi"), 1)
    lane.upstream.script(stream(delta("half"), ended=True))
    cut = run("chat", "-m", lane.model, "hi")
    assert (cut.returncode, cut.stdout) == (1, "half\n")
    assert cut.stderr.startswith("fairlead: ")


def test_a_conversation_goes_on_and_an_answer_can_be_ended(
    gateway: Gateway, lane: Lane, tmp_path: Path
) -> None:
    gate = Gate()
    environment = {"FAIRLEAD_DATA_DIR": str(gateway.data_dir), "XDG_CONFIG_HOME": str(tmp_path)}
    lane.upstream.script(
        said("one"), [SSE_HEAD, chunk(delta("two ")), gate], said("three"), said("four")
    )
    with Terminal("repl", "-m", lane.model, **environment) as terminal:
        at = terminal.wait_for("> ")
        terminal.type("first\r")
        at = terminal.wait_for("> ", after=terminal.wait_for("one\r\n", after=at))
        terminal.type("second\r")
        at = terminal.wait_for("two ", after=at)
        terminal.type("\x03")
        at = terminal.wait_for("> ", after=terminal.wait_for("(ended)", after=at))
        gate.open()
        terminal.type("third\r")
        at = terminal.wait_for("> ", after=terminal.wait_for("three", after=at))
        asked = lane.upstream.last.json()["messages"]
        assert [each["content"] for each in asked] == ["first", "one", "second", "two ", "third"]
        terminal.type("\x03")
        at = terminal.wait_for("> ", after=at)
        terminal.type("/clear\r")
        at = terminal.wait_for("> ", after=at)
        terminal.type("fourth \\\rline\r")
        at = terminal.wait_for("> ", after=terminal.wait_for("four\r\n", after=at))
        asked = lane.upstream.last.json()["messages"]
        assert [each["content"] for each in asked] == ["fourth \nline"]
        terminal.type("\x04")
        assert terminal.end() == 0
    history = tmp_path / "fairlead" / "history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert "second" in history.read_text()


def test_what_a_slash_says(run: Run, lane: Lane) -> None:
    lane.upstream.script(said("one"), reply({"error": {"message": "no"}}, status=400))
    typed = (
        "hi\n/model\n/model no-such/model\nhello\n/file /no/such\n/nonsense\n/help\n/exit\nnever\n"
    )
    ended = run("repl", "-m", lane.model, typed=typed)
    assert ended.returncode == 0
    assert ended.stdout.startswith(
        f"one\nThe model is {lane.model}.\nThe model is no-such/model.\n"
    )
    assert "/cost" in ended.stdout
    for part in (
        "WARNING: No provider or combo serves `no-such/model`",
        "`no-such`",
        "/no/such cannot be read",
        "There is no /nonsense",
    ):
        assert part in ended.stderr


def test_a_conversation_knows_its_cost(run: Run, lane: Lane, gateway: Gateway) -> None:
    lane.upstream.script(said("one"))
    assert run("repl", "-m", lane.model, typed="hi\n").stdout == "one\n"
    eventually(lambda: gateway.shown_records(model=lane.model), "the request is settled")
    counted = run("repl", "-m", lane.model, typed="hi\n/cost\n").stdout
    assert "tokens in" in counted
