"""What providers of videos do wrong, and where their credential goes."""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from fairlead.errors import (
    FairleadError,
    NotFound,
    StorageUnavailable,
    UpstreamAuth,
    UpstreamInvalid,
    UpstreamRefused,
    UpstreamStatus,
)
from fairlead.gateway.providers.credentials import Credentials
from fairlead.gateway.providers.endpoint import Endpoint
from fairlead.gateway.videos import runner
from fairlead.gateway.videos.provider import open_video
from fairlead.gateway.videos.runner import VideoRunner
from fairlead.gateway.videos.starts import ProviderOperation, VideoStarts
from fairlead.gateway.videos.table import Operation, find_operation, insert_operation
from fairlead.gateway.videos.targets import VideoTarget
from fairlead.net.egress import Egress
from fairlead.records.service_jobs import Subscribers, insert_job
from tests.support.management import Management, hold_keys, run_management
from tests.support.process import free_port
from tests.support.upstream import RESET, Script, Upstream, reply

pytestmark = pytest.mark.anyio

KEY = "video-credential-canary"
OPEN = "127.0.0.0/8"


@contextmanager
def serve(*scripts: Script) -> Iterator[Upstream]:
    with Upstream() as up:
        up.script(*scripts)
        yield up


def lane(url: str) -> VideoTarget:
    endpoint = Endpoint(("p",), "gemini", url, "x-goog-api-key", None, None, None, {})
    return VideoTarget("connection", "p", "", endpoint, Credentials(api_key=KEY))


async def read(egress: Egress, server: Upstream, uri: str) -> bytes:
    _, _, chunks = await open_video(egress, lane(server.url), uri)
    return b"".join([chunk async for chunk in chunks])


@pytest.fixture
def egress() -> Any:
    made = Egress(OPEN)
    yield made
    made.close()


VIDEO = reply(b"film", content_type="video/mp4")


def leads_to(target: str) -> Script:
    return reply(b"", 302, [("location", target)])


async def test_the_credential_goes_to_the_connections_origin_alone(egress: Egress) -> None:
    """Not where its answer leads to, nor to another address that it named."""
    with serve(VIDEO) as other, serve(leads_to(f"{other.url}/film")) as own:
        assert await read(egress, own, f"{own.url}/files/a:download") == b"film"
        assert own.last.header("x-goog-api-key") == KEY
        assert await read(egress, own, f"{other.url}/film") == b"film"
    assert len(other.requests) == 2
    assert KEY.encode() not in other.bytes_seen()


async def test_what_a_provider_names_must_be_public() -> None:
    """Its own address is the operator's word; where it leads to is not."""
    egress = Egress()
    try:
        with serve(VIDEO) as other, serve(leads_to(f"{other.url}/film")) as own:
            with pytest.raises(UpstreamRefused, match="cannot be read"):
                await read(egress, own, f"{own.url}/files/a:download")
            with pytest.raises(UpstreamRefused, match="cannot be read"):
                await read(egress, own, "http://169.254.169.254/latest")
        assert other.requests == []
    finally:
        egress.close()


@pytest.mark.parametrize("uri", ["file:///etc/passwd", "nonsense", "http://", "http://[::1"])
async def test_what_is_no_address(egress: Egress, uri: str) -> None:
    with serve(VIDEO) as own, pytest.raises(UpstreamInvalid, match="no address"):
        await read(egress, own, uri)


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (reply(b"", 404), NotFound),
        (leads_to("/again"), UpstreamInvalid),
        (leads_to("ftp://127.0.0.1/"), UpstreamInvalid),
        (reply(b"", 500), UpstreamStatus),
        (reply(b"", 403), UpstreamAuth),
    ],
)
async def test_a_video_that_is_not_given(
    egress: Egress, answer: Script, fault: type[FairleadError]
) -> None:
    with serve(answer) as own, pytest.raises(fault) as told:
        await read(egress, own, f"{own.url}/files/a:download")
    assert KEY not in told.value.message


# --- following


@pytest.fixture
async def management(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Management]:
    monkeypatch.setattr(runner, "FIRST_S", 0.01)
    monkeypatch.setattr(runner, "WITHOUT_ANSWER_S", 0.05)
    monkeypatch.setattr(runner, "SLOWEST_S", 0.05)
    async with run_management(tmp_path / "data", port=free_port()) as running:
        await hold_keys(running.services, "key")
        yield running


async def follow(
    management: Management,
    server: Upstream,
    *,
    left_ms: int = 60_000,
    gone: bool = False,
    name: str = "models/veo/operations/x",
) -> Any:
    """What comes of an operation that the server says this of."""
    node = await management.ask(
        "POST",
        "/api/provider-nodes",
        {"type": "gemini-compatible", "name": "p", "prefix": "p", "baseUrl": server.url},
        expect=201,
    )
    made = await management.ask(
        "POST",
        "/api/providers",
        {"provider": node["node"]["id"], "name": "c", "apiKey": KEY},
        expect=201,
    )
    connection_id = "none" if gone else made["connection"]["id"]
    server.requests.clear()
    at_ms = time.time_ns() // 1_000_000
    operation = Operation(
        "a1",
        "key",
        "p/veo",
        connection_id,
        name,
        None,
        None,
        at_ms,
        at_ms + left_ms,
        None,
    )
    state = management.services.state
    await state.record(lambda con: insert_operation(con, operation))
    await state.record(lambda con: insert_job(con, "key", "a1", Subscribers([], {"a": 1}), at_ms))
    VideoRunner.of(management.services).wake()
    with anyio.fail_after(30):
        while True:
            found = await state.read(lambda con: find_operation(con, "a1", "key", "p/veo"))
            if found.ended_at_ms is not None:
                break
            await anyio.sleep(0.02)
    ended = await state.read(
        lambda con: con.execute("SELECT ended_at_ms FROM service_jobs WHERE id = 'a1'").fetchone()
    )
    assert ended is not None
    assert ended[0] is not None
    return found


def told(**operation: Any) -> Script:
    return reply(operation)


SAMPLES = {"generatedSamples": [{"video": {"uri": "https://provider.example/files/a"}}]}
DONE = told(done=True, response={"generateVideoResponse": SAMPLES})


async def test_it_is_asked_on_whatever_comes_between(management: Management) -> None:
    faults = [
        reply(b"", 500),
        reply(b"", 429),
        reply(b"", 401),
        reply(b"no json"),
        leads_to("/"),
        [RESET],
        told(name="x"),
    ]
    with serve(*faults, DONE) as server:
        found = await follow(management, server)
    assert found.error is None
    assert "/v1beta/files/" in found.response
    assert len(server.requests) == len(faults) + 1
    assert {(seen.method, seen.target) for seen in server.requests} == {
        ("GET", "/v1/models/veo/operations/x")
    }


CASES: list[tuple[Script, int, str]] = [
    (reply(b"", 404), 5, "does not know the video"),
    (reply(b"", 403), 7, r"refuses to report the video's progress \(403\)"),
    (told(done=True), 2, "holds no video"),
    (told(done=True, error={"code": 8, "message": "x" * 9000}), 8, "^x{500}$"),
    (told(done=True, error={"code": "no", "message": 7}), 2, "The video failed"),
]


@pytest.mark.parametrize(("answer", "code", "said"), CASES)
async def test_what_comes_to_nothing_says_why(
    management: Management, answer: Script, code: int, said: str
) -> None:
    with serve(answer) as server:
        found = await follow(management, server)
    error = json.loads(found.error)
    assert error["code"] == code
    assert re.search(said, error["message"])


async def test_a_video_that_never_ends_is_given_up(management: Management) -> None:
    with serve(told(name="x")) as server:
        found = await follow(management, server, left_ms=300)
    assert json.loads(found.error) == {
        "code": 4,
        "message": "The provider did not finish the video in time.",
    }


@pytest.mark.parametrize("change", ["UPDATE keys SET is_active = false", "DELETE FROM keys"])
async def test_a_video_is_followed_no_longer_than_its_key_is_in_force(
    management: Management, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr("fairlead.store.runner.LOOK_EVERY_S", 0.05)
    async with anyio.create_task_group() as tasks:
        with serve(told(name="x")) as server:

            async def revoke() -> None:
                while len(server.requests) < 2:
                    await anyio.sleep(0.02)
                await management.services.state.commit(lambda con: con.execute(change).fetchall())

            tasks.start_soon(revoke)
            found = await follow(management, server)
    error = json.loads(found.error)
    assert error["code"] == 16
    assert error["message"].startswith("The API key that asked for this ")


async def test_a_connection_that_is_gone_ends_its_videos(management: Management) -> None:
    with serve(told(name="x")) as server:
        found = await follow(management, server, gone=True)
    assert "connection that began the video is gone" in found.error
    assert server.requests == []


async def test_one_that_nobody_is_beginning_any_more_says_so(management: Management) -> None:
    """Its process ended while a provider was asked."""
    with serve(DONE) as server:
        found = await follow(management, server, name="")
    error = json.loads(found.error)
    assert error["code"] == 2
    assert "it is not known whether it was started" in error["message"]
    assert server.requests == []


async def test_one_that_has_begun_is_not_lost_with_its_database(
    management: Management, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The news waits until it can be written; meanwhile the row is nobody else's to end."""
    services = management.services
    starts, state = VideoStarts.of(services), services.state
    at_ms = time.time_ns() // 1_000_000
    operation = Operation("b1", "key", "p/veo", "gone", "", None, None, at_ms, at_ms + 60_000, None)
    await starts.record_start(operation, None)
    record = type(state).record

    async def refuse(*_: Any) -> Any:
        raise StorageUnavailable("The disk is full.")

    monkeypatch.setattr(type(state), "record", refuse)
    await starts.begin(operation, ProviderOperation("gone", "models/veo/operations/y", "direct"))
    assert starts.unwritten == {
        "b1": ProviderOperation("gone", "models/veo/operations/y", "direct")
    }
    monkeypatch.setattr(type(state), "record", record)
    VideoRunner.of(services).wake()
    with anyio.fail_after(30):
        while True:
            found = await state.read(lambda con: find_operation(con, "b1", "key", "p/veo"))
            if found.ended_at_ms is not None:
                break
            await anyio.sleep(0.02)
    assert found.provider_operation == "models/veo/operations/y"
    assert "The connection that began the video is gone" in json.loads(found.error)["message"]
    assert starts.unwritten == {}


async def test_one_that_no_provider_took_leaves_no_row(management: Management) -> None:
    state = management.services.state
    starts, at_ms = VideoStarts.of(management.services), time.time_ns() // 1_000_000
    operation = Operation("c1", "key", "p/veo", "c", "", None, None, at_ms, at_ms + 60_000, None)
    await starts.record_start(operation, Subscribers([], {"a": 1}))
    assert starts.under_way == {"c1"}
    await starts.record_refusal(operation)
    assert starts.under_way == set()
    with pytest.raises(NotFound):
        await state.read(lambda con: find_operation(con, "c1", "key", "p/veo"))
