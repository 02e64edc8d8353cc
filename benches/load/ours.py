"""fairlead itself as a target: keys required, one provider, one key, usage recorded."""

from __future__ import annotations

import json
import shutil
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from target import Target, Unavailable, free_port, post, start, wait_for_line

COMMAND = Path(sys.executable).with_name("fairlead")


def start_fairlead(
    upstream: str,
    folder: Path,
    name: str = "fairlead",
    front: str = "granian",
    threads: int = 1,
    command: Path = COMMAND,
    **environment: str,
) -> Target:
    """A fresh instance with its own data directory in `folder`; `environment` is set beside it."""
    if not command.exists():
        raise Unavailable(
            f"there is no {command.name} in {command.parent.parent.name}: run `make bench` there"
        )
    data, log, port = folder / name, folder / f"{name}.log", free_port()
    shutil.rmtree(data, ignore_errors=True)
    words = [str(command), "serve", "--port", str(port), "--data-dir", str(data)]
    words += ["--front", front, "--threads", str(threads)]
    process = start(words, log=log, env={"REQUIRE_API_KEY": "true", **environment})
    target = Target(name, "", "", "up/mock", process.pid, process=process)
    try:
        wait_for_line(process, log, "fairlead ready", 60)
        base = f"http://127.0.0.1:{port}"
        add_upstream(base, data, upstream)
        key = manage(base, data, "/api/keys", name="bench")["key"]
        target.url = f"{base}/v1/chat/completions"
        target.headers = {"authorization": f"Bearer {key}"}
        target.version = version()
    except Exception:
        target.stop()
        raise
    return target


def add_upstream(base: str, data: Path, upstream: str) -> None:
    """The provider at this address, whose model is `up/mock` then."""
    manage(
        base,
        data,
        "/api/provider-nodes",
        name="upstream",
        prefix="up",
        type="openai-compatible",
        baseUrl=f"{upstream}/v1",
    )
    manage(base, data, "/api/providers", name="main", provider="up", apiKey="sk-upstream")


def manage(base: str, data: Path, path: str, **fields: Any) -> dict[str, Any]:
    """POSTs `fields` to a management route as the local command line."""
    answer: dict[str, Any] = json.loads(post(base + path, json.dumps(fields), local(data)))
    return answer


def local(data: Path) -> dict[str, str]:
    return {"x-gateway-cli-token": (data / "cli-token").read_text("ascii").strip()}


def version() -> str:
    from importlib.metadata import version as installed

    return installed("fairlead")


def recorded(target: Target, folder: Path, expected: int, deadline_s: float = 60) -> int:
    """How many requests stand in the usage database, once it is `expected` or the time is up."""
    base = target.url.removesuffix("/v1/chat/completions")
    request = urllib.request.Request(
        f"{base}/api/usage/request-logs?limit=1", headers=local(folder / target.name)
    )
    end, total = time.monotonic() + deadline_s, 0
    while total < expected and time.monotonic() < end:
        with urllib.request.urlopen(request, timeout=20) as answer:
            total = int(json.load(answer)["total"])
        time.sleep(0.2)
    return total
