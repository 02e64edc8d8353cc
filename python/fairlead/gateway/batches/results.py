"""The results of a batch on disk: one line for each request, appended as it is answered.

Two files in the folder `batches` become the output and the error file at the end. They are the only record of a
batch's progress: after a crash the requests in them do not run again, and an incomplete last line is cut off.
If nodes share the folder, only the node with the batch's lease writes.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from fairlead.gateway.batches.table import Counts
from fairlead.store.work_leases import check_lease, has_lease

_INPUT = ("prompt_tokens", "input_tokens")
_OUTPUT = ("completion_tokens", "output_tokens")
# Google's names of the counts; it does not count reasoning among the candidates.
_GOOGLE = (
    "promptTokenCount",
    "candidatesTokenCount",
    "cachedContentTokenCount",
    "thoughtsTokenCount",
)

LinePosition = tuple[Path, int]


class Results:
    """The results of one batch. Its functions block and are called by one thread at a time."""

    def __init__(self, data_dir: Path, batch_id: str) -> None:
        folder = data_dir / "batches"
        folder.mkdir(mode=0o700, exist_ok=True)
        self.output = folder / f"{batch_id}.output"
        self.errors = folder / f"{batch_id}.errors"
        self.done: set[str] = set()
        self._completed = self._failed = self._expired = 0
        self._tokens = [0, 0, 0, 0]
        for path in (self.output, self.errors):
            if has_lease() and path.exists():
                _make_own(path)
            for document in _whole_lines(path):
                self._note(document)
        self._files: dict[Path, BinaryIO] = {}

    def add(self, document: dict[str, Any]) -> None:
        """Appends a result to the output or to the error file."""
        check_lease()
        path = self.output if is_success(document) else self.errors
        file = self._files.get(path)
        if file is None:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            file = self._files[path] = os.fdopen(descriptor, "ab", buffering=0)
        file.write(orjson.dumps(document) + b"\n")
        self._note(document)

    def counts(self, total: int) -> Counts:
        """The counts of lines and tokens so far."""
        input_, output, cached, reasoning = self._tokens
        return Counts(
            total,
            self._completed,
            self._failed,
            tokens_input=input_,
            tokens_output=output,
            tokens_cached=cached,
            tokens_reasoning=reasoning,
            expired=self._expired,
        )

    def positions(self) -> dict[str, LinePosition]:
        """The place of each result in its file, by the name of its line."""
        found: dict[str, LinePosition] = {}
        for path in (self.output, self.errors):
            if not path.exists():
                continue
            offset = 0
            with path.open("rb") as file:
                for line in file:
                    found[orjson.loads(line)["custom_id"]] = (path, offset)
                    offset += len(line)
        return found

    def read(self, position: LinePosition) -> dict[str, Any]:
        """The result at this place."""
        path, offset = position
        with path.open("rb") as file:
            file.seek(offset)
            document: dict[str, Any] = orjson.loads(file.readline())
        return document

    def close(self) -> None:
        """Closes the files."""
        for file in self._files.values():
            file.close()
        self._files.clear()

    def remove(self) -> None:
        """Deletes the files."""
        self.close()
        for path in (self.output, self.errors):
            path.unlink(missing_ok=True)

    def _note(self, document: dict[str, Any]) -> None:
        self.done.add(document["custom_id"])
        if not is_success(document):
            self._failed += 1
            self._expired += is_expired(document)
            return
        self._completed += 1
        body = document["response"]["body"]
        content = body if isinstance(body, dict) else {}
        counts: tuple[int, ...] = ()
        if isinstance(usage := content.get("usage"), dict):
            counts = _tokens(usage)
        elif isinstance(usage := content.get("usageMetadata"), dict):
            counts = _google_tokens(usage)
        for position, count in enumerate(counts):
            self._tokens[position] += count


def is_success(document: dict[str, Any]) -> bool:
    """Whether a line was answered with success."""
    response = document["response"]
    return response is not None and 200 <= response["status_code"] < 300


def is_expired(document: dict[str, Any]) -> bool:
    """Whether a line was not sent, because the batch's time was over."""
    return document["response"] is None


def _tokens(usage: dict[str, Any]) -> tuple[int, int, int, int]:
    """Tokens of a result: input, output, cached, reasoning. Both dialects' names are read."""

    def count(names: tuple[str, ...], detail: str | None = None) -> int:
        for name in names:
            value = usage.get(name)
            if detail is not None:
                inner = usage.get(f"{name}_details")
                value = inner.get(detail) if isinstance(inner, dict) else None
            if isinstance(value, int) and value >= 0:
                return value
        return 0

    return (
        count(_INPUT),
        count(_OUTPUT),
        count(_INPUT, "cached_tokens"),
        count(_OUTPUT, "reasoning_tokens"),
    )


def _google_tokens(usage: dict[str, Any]) -> tuple[int, int, int, int]:
    counts = [usage.get(name) for name in _GOOGLE]
    input_, answer, cached, reasoning = (
        count if isinstance(count, int) and count >= 0 else 0 for count in counts
    )
    return input_, answer + reasoning, cached, reasoning


def _make_own(path: Path) -> None:
    """Puts a copy in the place of a file: a node that had the batch before may still have the old one open."""
    copy = path.with_suffix(f"{path.suffix}.copy")
    shutil.copyfile(path, copy)
    copy.replace(path)


def _whole_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The results in a file, without a last line that a crash cut off."""
    if not path.exists():
        return
    whole = 0
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                break
            try:
                document = orjson.loads(line)
            except orjson.JSONDecodeError:
                break
            whole += len(line)
            yield document
    if whole < path.stat().st_size:
        os.truncate(path, whole)
