"""What is measured: a server behind one URL that speaks OpenAI chat completions."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path


class Unavailable(Exception):
    """A target cannot be started here; the run goes on without it and says why."""


@dataclass(slots=True)
class Target:
    """`url` takes chat completions for `model` with `headers`; `pid` is the root of its tree."""

    name: str
    version: str
    url: str
    model: str
    pid: int
    headers: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[str] | None = None

    def body(self, *, stream: bool, model: str | None = None) -> str:
        return json.dumps(
            {
                "model": model or self.model,
                "max_tokens": 64,
                "stream": stream,
                "messages": [{"role": "user", "content": "hello"}],
            },
            separators=(",", ":"),
        )

    def verify(self) -> None:
        """One real answer and one whole stream: a run measures work, not refusals."""
        unary = json.loads(post(self.url, self.body(stream=False), self.headers))
        if not unary["choices"][0]["message"]["content"]:
            raise Unavailable("the answer is empty")
        stream = post(self.url, self.body(stream=True), self.headers)
        if not stream.rstrip().endswith(b"data: [DONE]"):
            raise Unavailable("its streams do not end with [DONE]")

    def stop(self, grace_s: float = 40) -> None:
        """Ends the process group: asked first, forced after `grace_s`."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(grace_s)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def start(
    command: list[str], *, log: Path, env: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    """Starts `command` as the head of a process group of its own, its output in `log`."""
    with log.open("w") as out:
        return subprocess.Popen(
            command,
            stdout=out,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            process_group=0,
            env={**os.environ, **(env or {})},
        )


def wait_for_line(
    process: subprocess.Popen[str], log: Path, start_of_line: str, deadline_s: float
) -> str:
    """The first line of `log` that begins so, or `Unavailable` with the end of the log."""
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        lines = log.read_text("utf-8", "replace").splitlines()
        for line in lines:
            if line.startswith(start_of_line):
                return line
        if process.poll() is not None:
            break
        time.sleep(0.05)
    tail = " | ".join(log.read_text("utf-8", "replace").splitlines()[-3:])
    raise Unavailable(f"did not become ready: {tail}"[:400])


def post(url: str, body: str, headers: dict[str, str], timeout_s: float = 20) -> bytes:
    request = urllib.request.Request(
        url, body.encode(), {"content-type": "application/json", **headers}, method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            return bytes(answer.read())
    except urllib.error.HTTPError as error:
        raise Unavailable(f"{url} answered {error.code}: {error.read()[:200]!r}") from error
    except OSError as error:
        raise Unavailable(f"{url}: {error}") from error


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
