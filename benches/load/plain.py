"""Plain completions, each connection with a pause between requests, and a provider that answers all of them alike."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.process import free_port

PAUSE_MS: Final = 20
WARM_UP_S: Final = 3
SCRIPT: Final = Path(__file__).with_name("load.lua")
ANSWER = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": "hello"},
        }
    ],
    "usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6},
}


@dataclass(frozen=True, slots=True)
class Answers:
    """How many requests were answered with 200, and how many with something else."""

    served: int
    refused: int

    def all_answered(self) -> int:
        """How many, where none was refused."""
        assert not self.refused, self
        return self.served


@contextlib.contextmanager
def provider(folder: Path) -> Iterator[str]:
    """An address whose every POST is answered with the same completion."""
    port = free_port()
    (folder / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/nginx.log;\n"
        "events { worker_connections 4096; }\n"
        "http { access_log off; keepalive_requests 1000000; default_type application/json;\n"
        f"server {{ listen 127.0.0.1:{port}; location / {{ return 200 '{json.dumps(ANSWER)}'; }} }} }}\n"
    )
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    assert program is not None, "nginx is not installed"
    process = subprocess.Popen([program, "-c", str(folder / "nginx.conf"), "-p", str(folder)])
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(10)


def load(
    urls: Sequence[str],
    keys: Sequence[str],
    model: str,
    connections: int,
    seconds: float,
    *,
    pause_ms: int = PAUSE_MS,
) -> Answers:
    """Loads each address with its part of the connections, each of which takes one key after the other, and pauses
    before a request. Without a pause (0) all go as fast as they can.
    """
    body = {"model": model, "max_tokens": 64, "messages": [{"role": "user", "content": "hello"}]}
    environment = os.environ | {
        "LOAD_HEADERS": "",
        "LOAD_KEYS": "\n".join(keys),
        "LOAD_BODY": json.dumps(body),
        "LOAD_PAUSE_MS": str(pause_ms or ""),
    }
    each = str(connections // len(urls))
    started = [
        subprocess.Popen(
            ["wrk", "-t", "1", "-c", each, "-d", f"{seconds:g}s", "-s", str(SCRIPT), url],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for url in urls
    ]
    served = refused = 0
    for process in started:
        told = json.loads(process.communicate()[0].strip().splitlines()[-1])
        assert told["broken"] == 0, told
        served += int(told["requests"]) - int(told["refused"])
        refused += int(told["refused"])
    return Answers(served, refused)
