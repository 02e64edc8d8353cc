"""`fairlead repl`: a conversation at the terminal."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from fairlead.cli.commands.chat import MaxTokens, Model, System, print_pieces, wanted_model
from fairlead.cli.failure import CommandFailed
from fairlead.cli.model_names import callable_names, unknown_model_warning
from fairlead.cli.options import DATA_DIR, DataDir, Url
from fairlead.cli.output import print_message
from fairlead.text.sentence import opened

if TYPE_CHECKING:
    from fairlead.cli.conversation import Conversation
    from fairlead.cli.instance import Instance

_HISTORY_LINES: Final = 1000
_LOG_PAGE: Final = 500
_HELP: Final = """\
/model [NAME]  show the model, or change it
/file PATH     send a file with the next question: text, picture or PDF
/cost          show the cost of this conversation
/clear         start an empty conversation
/help          print this
/exit          end (so does Ctrl-D)
Ctrl-C ends an answer, not the conversation. A backslash at a line's end continues it on the next one."""


def repl(
    model: Model = None,
    system: System = None,
    max_tokens: MaxTokens = None,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
) -> None:
    """Talk with a model. `/help` lists the commands. Your input is stored in a history file."""
    from fairlead.cli.conversation import Conversation
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance, _history():
        dialogue = Dialogue(instance, Conversation(wanted_model(model), max_tokens=max_tokens))
        dialogue.begin(system)
        dialogue.run()


class Dialogue:
    """Lines of a user, each answered by the model, or obeyed where it begins with a slash."""

    def __init__(self, instance: Instance, conversation: Conversation) -> None:
        self._instance = instance
        self._conversation = conversation
        self._system: list[dict[str, Any]] = []
        self._attachments: list[dict[str, Any]] = []

    def begin(self, system: str | None) -> None:
        """Puts the instructions before everything else."""
        self._system = [{"role": "system", "content": system}] if system else []
        self._conversation.messages[:] = self._system

    def run(self) -> None:
        """Reads lines until there are no more, or until `/exit`."""
        print(f"{self._conversation.model}; /help says what can be done.", file=sys.stderr)
        while (line := _read_question()) is not None:
            if not line.strip():
                continue
            try:
                if not line.startswith("/"):
                    self._answer(line)
                elif not self._obey(line):
                    return
            except CommandFailed as failure:
                print_message(f"fairlead: {failure.sentence}", to_stderr=True)

    def _answer(self, question: str) -> None:
        attachments, self._attachments = self._attachments, []
        self._conversation.add_question(question, attachments)
        pieces = self._conversation.stream(self._instance)
        try:
            print_pieces(pieces)
        except KeyboardInterrupt:
            print("(ended)", file=sys.stderr)
        finally:
            # Leaving the stream is what tells the gateway to end the provider's call.
            pieces.close()

    def _obey(self, line: str) -> bool:
        """Does what a line with a slash says; False when it says to end. Raises `CommandFailed`."""
        word, _, rest = line.strip().partition(" ")
        rest = rest.strip()
        match word:
            case "/exit" | "/quit":
                return False
            case "/help":
                print(_HELP)
            case "/model":
                if (
                    rest
                    and (warning := unknown_model_warning(rest, callable_names(self._instance)))
                    is not None
                ):
                    print_message(f"fairlead: WARNING: {opened(warning)}", to_stderr=True)
                self._conversation.model = rest or self._conversation.model
                print_message(f"The model is {self._conversation.model}.")
            case "/file":
                self._attach(rest)
            case "/clear":
                self._conversation.messages[:] = self._system
                print_message("The conversation is empty.")
            case "/cost":
                print_message(_cost(self._instance, self._conversation.request_ids))
            case _:
                raise CommandFailed(f"there is no {word}: /help lists what there is.")
        return True

    def _attach(self, text: str) -> None:
        from fairlead.cli.attachment import attachment

        try:
            paths = shlex.split(text)
        except ValueError:
            raise CommandFailed("a quote in the path is not closed.") from None
        if not paths:
            raise CommandFailed("name the file: /file PATH.")
        self._attachments += [attachment(Path(path).expanduser()) for path in paths]
        print_message(f"{len(self._attachments)} to be sent with the next question.")


def _cost(instance: Instance, request_ids: list[str]) -> str:
    """The cost of the requests, as the gateway has settled them."""
    from fairlead.cli.money import cost_of

    wanted = set(request_ids)
    logs = instance.get("/api/usage/logs", limit=_LOG_PAGE)["logs"]
    settled = [row for row in logs if row["requestId"] in wanted]
    tokens_in = sum(row["tokensInput"] for row in settled)
    tokens_out = sum(row["tokensOutput"] for row in settled)
    known = sum(row["costUsdMicros"] for row in settled)
    cost = cost_of(
        {"costUsdMicros": known, "isUnpriced": any(row["isUnpriced"] for row in settled)}
    )
    waiting = len(wanted) - len(settled)
    later = f"; {waiting} not counted yet" if waiting else ""
    return f"{cost} for {len(settled)} answers: {tokens_in} tokens in, {tokens_out} out{later}."


def _read_question() -> str | None:
    """The user's next input, over several lines if each except the last ends with a backslash; None at the end."""
    lines: list[str] = []
    while True:
        try:
            line = input(_prompt(goes_on=bool(lines)))
        except EOFError:
            if sys.stdin.isatty():
                print()
            return "\n".join(lines) if lines else None
        except KeyboardInterrupt:
            print()
            lines.clear()
            continue
        if not line.endswith("\\"):
            return "\n".join([*lines, line])
        lines.append(line[:-1])


@contextlib.contextmanager
def _history() -> Iterator[None]:
    """Earlier lines under the arrow keys; kept in a file that its owner alone may read. None without a terminal."""
    if not sys.stdin.isatty():
        yield
        return
    try:
        import readline
    except ImportError:  # a Python that was built without it
        yield
        return
    path = Path(typer.get_app_dir("fairlead")) / "history"
    with contextlib.suppress(OSError):
        readline.read_history_file(path)
    readline.set_history_length(_HISTORY_LINES)
    try:
        yield
    finally:
        _keep_history(path, readline.write_history_file)


def _keep_history(path: Path, write: Any) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        path.chmod(0o600)
        write(path)
    except OSError as error:
        print_message(f"fairlead: {path} cannot be written ({error.strerror}).", to_stderr=True)


def _prompt(*, goes_on: bool) -> str:
    """Nothing where a program types."""
    if not sys.stdin.isatty():
        return ""
    return "... " if goes_on else "> "
