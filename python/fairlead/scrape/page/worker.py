"""The process in which pages and documents are read: `python -m fairlead.scrape.page.worker <fd>`.

It takes frames from a socket and answers each: 4 bytes of length (big-endian) and then the content. A
question is two frames, a head as JSON and a body; an answer is one, as JSON:

    {"url", "content_type", "redirects", "options"}, the page    {"document", "links"} or {"refused"}
    {"url", "plan"}, HTML in UTF-8                            {"selected"}
    {"url", "addresses_max"}, the sitemap                     {"sitemap"}
    {"judges": true}, {"schema", "data"?} as JSON             {"refused"} or {"violations"}
    {"chooses": true}, {"lists", "words", "addresses"}        {"refused"} or {"accepted"}

or `{"unreadable"}` or `{"defect"}`. It ends when the socket does. Its memory is bounded; what does not fit ends the
process, and the pool starts another.
"""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import sys
from typing import Any, Final

import orjson

from fairlead.scrape.page.extract import ReadOptions, Source, Unreadable, select
from fairlead.scrape.page.selection import BadSelector, extract_selected
from fairlead.scrape.page.sitemap import read_sitemap

MEMORY_MAX_BYTES: Final = 1024 * 1024 * 1024
NICENESS: Final = 5


def main() -> None:
    """Serves until the other side is gone."""
    # Requests to models go before pages.
    os.nice(NICENESS)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = MEMORY_MAX_BYTES if hard == resource.RLIM_INFINITY else min(MEMORY_MAX_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with socket.socket(fileno=int(sys.argv[1])) as wire, contextlib.suppress(EOFError, OSError):
        while True:
            head = orjson.loads(_frame(wire))
            answer = _read(head, _frame(wire))
            wire.sendall(len(answer).to_bytes(4, "big") + answer)


def _read(head: dict[str, Any], body: bytes) -> bytes:
    """The answer to a question; libraries that few questions need are imported with the first of those."""
    try:
        if "plan" in head:
            answer: dict[str, Any] = {"selected": select(head["url"], body.decode(), head["plan"])}
        elif "addresses_max" in head:
            answer = {"sitemap": read_sitemap(body, head["url"], head["addresses_max"])}
        elif "judges" in head:
            from fairlead.scrape.page.schema import judge

            question = orjson.loads(body)
            answer = judge(question["schema"], *([question["data"]] if "data" in question else []))
        elif "chooses" in head:
            from fairlead.scrape.page.patterns import judge_addresses

            answer = judge_addresses(orjson.loads(body))
        else:
            options = ReadOptions(**head.pop("options"))
            source = Source(body=body, **head)
            links: list[str] = []
            if options.is_document:
                from fairlead.scrape.document.read import read_document

                document = read_document(source, options)
            else:
                document, links = extract_selected(source, options)
            answer = {"document": document, "links": links}
    except BadSelector as reason:
        return orjson.dumps({"refused": str(reason)})
    except Unreadable as reason:
        return orjson.dumps({"unreadable": str(reason)})
    except MemoryError:
        # There may be no memory left for an answer.
        os._exit(1)
    except Exception as error:  # noqa: BLE001 - the pool logs it
        return orjson.dumps({"defect": f"{type(error).__name__} {error}"[:300]})
    return orjson.dumps(answer)


def _frame(wire: socket.socket) -> bytes:
    length = int.from_bytes(_exactly(wire, 4), "big")
    return _exactly(wire, length)


def _exactly(wire: socket.socket, length: int) -> bytes:
    taken = bytearray(length)
    view, have = memoryview(taken), 0
    while have < length:
        count = wire.recv_into(view[have:])
        if count == 0:
            raise EOFError
        have += count
    return bytes(taken)


if __name__ == "__main__":
    main()
