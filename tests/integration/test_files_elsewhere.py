"""Files in an S3-compatible store: uploads, batches and backups, and what is left when the process is killed."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.support.polling import eventually
from tests.support.processes import Gateway, expect
from tests.support.s3_server import SECRET_ACCESS_KEY, SETTINGS, S3Server
from tests.support.upstream import Script, Seen, Upstream, completion, reply

LARGE = bytes(range(256)) * 4096 * 20


class Answering(Upstream):
    """Answers every request with its own text; `held` texts wait for the gate first."""

    def choose(self, seen: Seen) -> Script:
        return reply(completion(seen.json()["messages"][-1]["content"]))


@pytest.fixture
def answering() -> Iterator[Answering]:
    with Answering() as running:
        yield running


@pytest.fixture
def server() -> Iterator[S3Server]:
    with S3Server() as running:
        yield running


def start(gateways: Callable[..., Gateway], server: S3Server) -> Gateway:
    gateway = gateways(FAIRLEAD_FILES_URL=server.url, **SETTINGS)
    gateway.canaries.append(SECRET_ACCESS_KEY)
    return gateway


def upload(gateway: Gateway, content: bytes, purpose: str = "user_data") -> httpx.Response:
    return gateway.caller.post(
        "/v1/files", files={"file": ("f", content)}, data={"purpose": purpose}, timeout=60
    )


def test_files_batches_and_backups_are_in_the_bucket(
    gateways: Callable[..., Gateway], server: S3Server, answering: Answering
) -> None:
    gateway = start(gateways, server)
    lane = gateway.add_lane(answering)
    large = expect(upload(gateway, LARGE), 200)["id"]
    assert server.below("files")[large] == LARGE
    assert not server.uploads
    path = f"/v1/files/{large}/content"
    assert gateway.caller.get(path).content == LARGE
    for asked, part in (("bytes=5-9", LARGE[5:10]), ("bytes=-7", LARGE[-7:])):
        answer = gateway.caller.get(path, headers={"range": asked})
        assert (answer.status_code, answer.content) == (206, part)
        assert answer.headers["content-range"].endswith(f"/{len(LARGE)}")
    assert gateway.caller.get(path, headers={"range": f"bytes={len(LARGE)}-"}).status_code == 416
    # A store that breaks off once is not the caller's trouble.
    server.cut_after = 1_000_000
    assert gateway.caller.get(path).content == LARGE

    lines = b"".join(
        json.dumps(
            {
                "custom_id": f"r{number}",
                "method": "POST",
                "url": "/v1/chat/completions",
                "body": {
                    "model": lane.model,
                    "messages": [{"role": "user", "content": f"t{number}"}],
                },
            }
        ).encode()
        + b"\n"
        for number in range(12)
    )
    source = expect(upload(gateway, lines, "batch"), 200)["id"]
    request = {
        "input_file_id": source,
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
    }
    batch = expect(gateway.caller.post("/v1/batches", json=request), 200)

    def ended() -> dict[str, Any] | None:
        found = expect(gateway.caller.get(f"/v1/batches/{batch['id']}"), 200)
        return found if found["status"] == "completed" else None

    done = eventually(ended, "the batch ends", within_s=60, every_s=0.2)
    output = server.below("files")[done["output_file_id"]]
    rows = {json.loads(row)["custom_id"]: json.loads(row) for row in output.splitlines()}
    assert len(rows) == 12
    assert rows["r3"]["response"]["body"]["choices"][0]["message"]["content"] == "t3"
    eventually(lambda: not server.below("batches"), "its pieces are gone", within_s=5)
    work = gateway.data_dir / "batches"
    eventually(lambda: not any(work.iterdir()), "so is the work on this machine", within_s=5)

    made = expect(gateway.admin.put("/api/db-backups"), 200)
    assert server.below("backups")[made["filename"]][8:12] == b"DUCK"
    listed = expect(gateway.admin.get("/api/db-backups"), 200)["backups"]
    assert [each["id"] for each in listed] == [made["id"]]
    assert not list((gateway.data_dir / "backups").iterdir())
    expect(gateway.caller.delete(f"/v1/files/{large}"), 200)
    assert large not in server.below("files")
    assert not (gateway.data_dir / "files").exists()


def test_a_process_that_is_killed_in_an_upload_loses_nothing_that_it_acknowledged(
    gateways: Callable[..., Gateway], server: S3Server
) -> None:
    gateway = start(gateways, server)
    kept = expect(upload(gateway, b"acknowledged"), 200)["id"]
    server.hold_parts = threading.Event()
    gone: list[Exception] = []

    def interrupted() -> None:
        try:
            upload(gateway, LARGE)
        except httpx.HTTPError as error:
            gone.append(error)

    uploading = threading.Thread(target=interrupted)
    uploading.start()
    eventually(lambda: server.uploads, "the upload is under way", within_s=20)
    gateway.kill_all()
    server.hold_parts.set()
    uploading.join(30)
    assert gone
    gateway.start()
    listed = expect(gateway.caller.get("/v1/files"), 200)["data"]
    assert [each["id"] for each in listed] == [kept]
    assert gateway.caller.get(f"/v1/files/{kept}/content").content == b"acknowledged"
    assert set(server.below("files")) == {kept}, "nothing is seen of the other"


def test_a_store_that_is_away_is_said_and_loses_nothing(
    gateways: Callable[..., Gateway], server: S3Server
) -> None:
    gateway = start(gateways, server)
    kept = expect(upload(gateway, b"before"), 200)["id"]
    server.failures = 1_000
    refused = upload(gateway, b"meanwhile")
    assert refused.status_code == 503, refused.text
    assert "does not answer" in refused.json()["error"]["message"]
    server.failures = 0
    assert gateway.caller.get(f"/v1/files/{kept}/content").content == b"before"
    assert len(expect(gateway.caller.get("/v1/files"), 200)["data"]) == 1


def test_a_place_that_cannot_be_used_is_one_line(gateways: Callable[..., Gateway]) -> None:
    with pytest.raises(AssertionError, match="names a bucket: set FAIRLEAD_FILES_ACCESS_KEY_ID"):
        gateways(FAIRLEAD_FILES_URL="s3://bucket")
    with pytest.raises(AssertionError, match="is no folder that can be written to"):
        gateways(FAIRLEAD_FILES_URL="file:///nowhere/at/all")
