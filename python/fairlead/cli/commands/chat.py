"""`fairlead chat`: one question, and its answer as it comes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from fairlead.cli.commands.completion import complete_model
from fairlead.cli.failure import CommandFailed
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url

Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        envvar="FAIRLEAD_MODEL",
        help="The model to ask: `<prefix>/<model>`, a combo or an alias.",
        autocompletion=complete_model,
        show_default=False,
    ),
]
System = Annotated[str | None, typer.Option(help="The system prompt.")]
MaxTokens = Annotated[
    int | None, typer.Option(min=1, help="The maximum length of the answer, in tokens.")
]


def chat(
    prompt: Annotated[
        str | None, typer.Argument(help="The question. Default, and with `-`: standard input.")
    ] = None,
    model: Model = None,
    file: Annotated[
        list[Path] | None,
        typer.Option("--file", "-f", help="A text, picture or PDF to attach. Repeatable."),
    ] = None,
    system: System = None,
    max_tokens: MaxTokens = None,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Ask a model one question and stream its answer. The model is given no tools."""
    from fairlead.cli.attachment import attachment
    from fairlead.cli.conversation import Conversation
    from fairlead.cli.instance import Instance
    from fairlead.cli.output import show_json

    conversation = Conversation(wanted_model(model), max_tokens=max_tokens)
    if system:
        conversation.messages.append({"role": "system", "content": system})
    conversation.add_question(_question(prompt), [attachment(path) for path in file or []])
    with Instance(url, data_dir) as instance:
        if as_json:
            show_json(conversation.ask(instance))
        else:
            print_pieces(conversation.stream(instance))


def wanted_model(model: str | None) -> str:
    """The model that was named. Raises `CommandFailed`."""
    if model is None:
        raise CommandFailed(
            "no model is named: use --model (or FAIRLEAD_MODEL); `fairlead models` lists them."
        )
    return model


def print_pieces(pieces: Iterator[str]) -> None:
    """Prints the pieces of an answer at once, each without its control codes, and ends the line."""
    from fairlead.cli.printable import printable_text

    is_open = False
    try:
        for piece in pieces:
            sys.stdout.write(printable_text(piece))
            sys.stdout.flush()
            is_open = not piece.endswith("\n")
    finally:
        if is_open:
            print(flush=True)


def _question(prompt: str | None) -> str:
    if prompt is not None and prompt != "-":
        return prompt
    if prompt is None and sys.stdin.isatty():
        raise CommandFailed("there is no question: write it behind `fairlead chat`, in quotes.")
    text = sys.stdin.read()
    if not text.strip():
        raise CommandFailed("the question on standard input is empty.")
    return text
