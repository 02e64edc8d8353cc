"""What the compiler learns of how fairlead is used, for a release (`make build`).

An instrumented build writes down what it runs; the release is laid out by that (profile-guided
optimisation). So this plays an ordinary day in small: every dialect, plain and streamed, over both
fronts, small bodies and large, refusals too, against the stand-in provider and one that sends as fast
as it can; then every pair of dialects, and pages. Counts matter here and time does not.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent / "load"))
from benches.extract import large_page, source_of
from fairlead.scrape.page.extract import ReadOptions, extract
from others import start_upstream
from ours import COMMAND, add_upstream, manage
from target import Target, free_port, start, wait_for_line

FRONTS: Final = ("native", "granian")
CLIENTS: Final = 8
# Of each client; a round asks each question once, and the first of them, the most usual, ten times.
ROUNDS: Final = 30
USUAL: Final = 10
# Of a stream of the fast provider.
CHUNKS: Final = 100
PAGES: Final = 100
START_S: Final = 120.0
ANSWER_S: Final = 60.0

SAID: Final = "Which of these three is the tallest, and by how much? Answer in one sentence."
TURNS: Final = [{"role": "user", "content": SAID}]
# As a coding tool sends it: many turns, so that reading and judging a body count too.
LONG: Final = [{"role": r, "content": SAID * 8} for _ in range(20) for r in ("user", "assistant")]

CONTENTS: Final = [{"role": "user", "parts": [{"text": SAID}]}]
GEMINI: Final = "/v1beta/models/demo/standin"
CHAT: Final = "/v1/chat/completions"
QUESTIONS: Final[list[tuple[str, dict[str, Any], int]]] = [
    (CHAT, {"messages": TURNS}, 200),
    (CHAT, {"messages": TURNS, "stream": True}, 200),
    (CHAT, {"messages": [*LONG, *TURNS], "temperature": 0.2}, 200),
    ("/v1/messages", {"messages": TURNS, "max_tokens": 100}, 200),
    ("/v1/messages", {"messages": TURNS, "max_tokens": 100, "stream": True}, 200),
    (GEMINI + ":generateContent", {"contents": CONTENTS}, 200),
    (GEMINI + ":streamGenerateContent?alt=sse", {"contents": CONTENTS}, 200),
    ("/v1/embeddings", {"input": SAID, "model": "demo/standin-embedding"}, 200),
    ("/v1/responses", {"input": SAID, "store": False}, 200),
    ("/v1/responses", {"input": SAID, "store": False, "stream": True}, 200),
    (CHAT, {"messages": TURNS, "model": "up/mock"}, 200),
    (CHAT, {"messages": TURNS, "model": "up/mock", "stream": True}, 200),
    (CHAT, {"messages": TURNS, "model": "nobody/nothing"}, 404),
    (CHAT, {"messages": "no list"}, 400),
]


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        upstream = start_upstream(folder, CHUNKS)
        try:
            for front in FRONTS:
                print(f"{front}: {play(folder / front, front, upstream)} requests", flush=True)
        finally:
            upstream.stop()
    pairs = ["--streams", "40", "--rounds", "1", "--without-core"]
    subprocess.run([sys.executable, Path(__file__).with_name("translate.py"), *pairs], check=True)
    read_pages()


def read_pages() -> None:
    source = source_of(large_page())
    for form in ("markdown", "text", "html"):
        for _ in range(PAGES):
            extract(source, ReadOptions(form=form))
    print(f"{3 * PAGES} pages", flush=True)


def play(folder: Path, front: str, upstream: Target) -> int:
    """A day of one front; how many requests it had."""
    target = start_fairlead(folder, front, upstream.url.removesuffix(CHAT))
    try:
        with ThreadPoolExecutor(CLIENTS) as clients:
            return sum(clients.map(ask_all, [target] * CLIENTS))
    finally:
        # Ended in peace: what a process has learnt it writes as it ends.
        target.stop()


def start_fairlead(folder: Path, front: str, upstream: str) -> Target:
    folder.mkdir()
    port, log = free_port(), folder / "log"
    command = [str(COMMAND), "serve", "--demo", "--front", front]
    command += ["--port", str(port), "--data-dir", str(folder / "data")]
    process = start(command, log=log, env={"REQUIRE_API_KEY": "true"})
    base = f"http://127.0.0.1:{port}"
    target = Target(front, "", base + CHAT, "demo/standin", process.pid, process=process)
    try:
        wait_for_line(process, log, "fairlead ready", START_S)
        add_upstream(base, folder / "data", upstream)
        key = manage(base, folder / "data", "/api/keys", name="training")["key"]
    except BaseException:
        target.stop()
        raise
    target.headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    return target


def ask_all(target: Target) -> int:
    """One client's questions over one connection; how many they were.

    Raises at another answer than was to come: a profile of failures would be worse than none.
    """
    host = target.url.split("/")[2]
    connection = http.client.HTTPConnection(host, timeout=ANSWER_S)
    asked = 0
    for _ in range(ROUNDS):
        for number, (path, body, status) in enumerate(QUESTIONS):
            for _ in range(1 if number else USUAL):
                text = json.dumps({"model": target.model, **body})
                connection.request("POST", path, text, target.headers)
                answer = connection.getresponse()
                said = answer.read()
                if answer.status != status:
                    raise SystemExit(f"{path} was answered {answer.status}: {said[:500]!r}")
                asked += 1
    connection.close()
    return asked


if __name__ == "__main__":
    main()
