"""One control and two nodes of relays over TLS, on one PostgreSQL: what they share, and what is refused."""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import psycopg
import pytest

from tests.support.authority import Authority
from tests.support.chat import chat_with_key, counted_requests
from tests.support.polling import eventually
from tests.support.process import free_port
from tests.support.processes import DEFAULTS, Gateway, expect
from tests.support.upstream import Plain

if TYPE_CHECKING:
    from tests.support.postgresql import PostgresqlServer

KEY = "bm9kZXMgb2Ygb25lIGRhdGFiYXNlIHNoYXJlIGEga2U="
TOKEN = "a-node-token-of-this-test-only-0123456789"


@pytest.fixture(scope="module")
def plain() -> Iterator[Plain]:
    with Plain() as running:
        yield running


@dataclass
class Site:
    """The nodes, and what another one would need."""

    folder: Path
    authority: Authority
    control: Gateway
    control_url: str
    database_url: str
    relays: tuple[Gateway, Gateway]

    def relay_settings(self, **changed: str) -> dict[str, str]:
        relay = self.authority.issue("relay", "DNS:relay")
        return DEFAULTS | {
            "FAIRLEAD_ROLE": "relay",
            "FAIRLEAD_CONTROL_URLS": f"https://127.0.0.1:{free_port()},{self.control_url}",
            "FAIRLEAD_NODE_TOKEN": TOKEN,
            "FAIRLEAD_NODE_CA": str(self.authority.certificate),
            "FAIRLEAD_NODE_CERTIFICATE": str(relay.certificate),
            "FAIRLEAD_NODE_KEY": str(relay.key),
            "FAIRLEAD_SECRET_KEY": KEY,
            **changed,
        }

    def launched(self, name: str, **changed: str) -> Gateway:
        """A node of a relay that is started and not waited for."""
        gateway = Gateway(
            self.folder / name,
            free_port(),
            {k: v for k, v in self.relay_settings(**changed).items() if v},
        )
        gateway.launch()
        return gateway


@pytest.fixture(scope="module")
def site(postgresql: PostgresqlServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    url = postgresql.migrated()
    folder = tmp_path_factory.mktemp("site")
    authority = Authority(folder / "authority")
    issued = authority.issue("control", "IP:127.0.0.1")
    port = free_port()
    control = Gateway(
        folder / "control",
        free_port(),
        DEFAULTS
        | {
            "FAIRLEAD_ROLE": "control",
            "FAIRLEAD_CONTROL_LISTEN": f"127.0.0.1:{port}",
            "FAIRLEAD_NODE_TOKEN": TOKEN,
            "FAIRLEAD_NODE_CERTIFICATE": str(issued.certificate),
            "FAIRLEAD_NODE_KEY": str(issued.key),
            "FAIRLEAD_NODE_CA": str(authority.certificate),
            "FAIRLEAD_DATABASE_URL": url,
            "FAIRLEAD_SECRET_KEY": KEY,
        },
    )
    with contextlib.ExitStack() as stack:
        stack.callback(postgresql.drop, url)
        stack.callback(control.stop)
        control.start()
        relays: list[Gateway] = []
        made = Site(
            folder, authority, control, f"https://127.0.0.1:{port}", url, (control, control)
        )
        for name, front, host in (
            ("first", "granian", "127.0.0.1"),
            ("second", "native", "0.0.0.0"),
        ):
            relay = Gateway(
                folder / name,
                free_port(),
                made.relay_settings(FAIRLEAD_FRONT=front, FAIRLEAD_HOST=host),
            )
            stack.callback(relay.stop)
            relay.start()
            # The command line's token of the control counts at every relay.
            (relay.data_dir / "cli-token").write_bytes(
                (control.data_dir / "cli-token").read_bytes()
            )
            for gateway in (relay, control):
                gateway.canaries.append(TOKEN)
            relays.append(relay)
        made.relays = (relays[0], relays[1])
        yield made


def line_of_log(url: str, key_id: str) -> bytes:
    """The record of a key's only request, as it stands in the log of usage."""
    with psycopg.connect(url) as con:
        found = con.execute(
            "SELECT data FROM fairlead.usage_segments ORDER BY position DESC"
        ).fetchall()
    lines = (line for (data,) in found for line in zlib.decompress(data).splitlines(keepends=True))
    return next(line for line in lines if key_id.encode() in line)


def manages(gateway: Gateway) -> bool:
    with contextlib.suppress(httpx.HTTPError):
        return gateway.admin.get("/api/keys").status_code == 200
    return False


def test_a_change_holds_at_both_relays_when_its_write_answers(site: Site, plain: Plain) -> None:
    first, second = site.relays
    lane = first.add_lane(plain)
    for _ in range(3):
        made = second.create_key(name="everywhere")
        assert [
            chat_with_key(each, made["key"], lane.body()).status_code for each in site.relays
        ] == [
            200,
            200,
        ]
        answer = first.admin.delete(f"/api/keys/{made['id']}")
        assert answer.status_code in (200, 204), answer.text
        assert "x-gateway-snapshot" not in answer.headers
        assert [
            chat_with_key(each, made["key"], lane.body()).status_code for each in site.relays
        ] == [
            401,
            401,
        ]


def test_the_cluster_shows_relays_with_version_and_lag(site: Site) -> None:
    def shown() -> list[dict[str, Any]] | None:
        told = expect(site.relays[0].admin.get("/api/cluster"), 200)
        [node] = told["nodes"]
        assert node["report"]["role"] == "control"
        relays: list[dict[str, Any]] = node["report"]["relays"]
        are_even = all(each["snapshotVersion"] == told["snapshotVersion"] for each in relays)
        return relays if len(relays) == 2 and are_even else None

    relays = eventually(shown, "both relays are shown", within_s=20)
    assert all(each["segmentsLeft"] == 0 and each["version"] for each in relays)


def test_calls_go_on_without_control_and_usage_counts_once(site: Site, plain: Plain) -> None:
    first, second = site.relays
    lane, made = first.add_lane(plain), first.create_key(name="counted")

    def recorded() -> int:
        return counted_requests(first, made["id"])

    def calls(count: int) -> None:
        for at in range(count):
            assert chat_with_key(site.relays[at % 2], made["key"], lane.body()).status_code == 200

    calls(10)
    site.control.kill_all()
    eventually(lambda: not manages(first), "control is gone", within_s=20)
    calls(10)
    refused = first.admin.get("/api/keys")
    assert refused.status_code == 503, refused.text
    # A node that is killed and comes back without control: its snapshot is on its disk, and so is what it recorded.
    second.kill_all()
    second.start()
    calls(10)
    site.control.start()
    eventually(lambda: manages(first) and manages(second), "control is back", within_s=40)
    calls(10)
    eventually(lambda: recorded() == 40, "every call is recorded", within_s=40)
    time.sleep(2)
    assert recorded() == 40


def test_a_node_that_is_stopped_brings_what_it_recorded_last(site: Site, plain: Plain) -> None:
    first, second = site.relays
    lane, made = first.add_lane(plain), first.create_key(name="drained")
    assert [chat_with_key(second, made["key"], lane.body()).status_code for _ in range(5)] == [
        200
    ] * 5
    assert second.stop() == 0
    assert not list((second.data_dir / "spool").glob("*.*"))
    eventually(lambda: counted_requests(first, made["id"]) == 5, "all five count", within_s=20)
    second.start()


def test_a_file_goes_up_at_one_relay_and_comes_down_at_another(site: Site) -> None:
    first, second = site.relays
    auth = {"authorization": f"Bearer {first.create_key(name='files')['key']}"}
    contents = b'{"custom_id":"1"}\n' * 20_000
    made = expect(
        httpx.post(
            f"{first.url}/v1/files",
            files={"file": ("in.jsonl", contents, "application/jsonl")},
            data={"purpose": "batch"},
            headers=auth,
            timeout=30,
        ),
        200,
    )
    answer = httpx.get(f"{second.url}/v1/files/{made['id']}/content", headers=auth, timeout=30)
    assert answer.content == contents


def test_kept_bodies_of_relays_are_shown(site: Site, plain: Plain) -> None:
    first, second = site.relays
    lane = first.add_lane(plain)
    key = first.create_key(name="bodies", captureBodies=True)["key"]
    answer = chat_with_key(second, key, lane.body())
    assert answer.status_code == 200
    path = f"/api/usage/logs/{answer.headers['x-gateway-request-id']}/body"

    def shown() -> bool:
        told = first.admin.get(path)
        return told.status_code == 200 and "hello" in told.text

    eventually(shown, "the body that was kept at a relay is shown", within_s=20)
    assert not list((second.data_dir / "spool" / "bodies").iterdir())


def test_bodies_that_a_control_has_no_room_for_wait_and_hold_no_usage_up(
    site: Site, plain: Plain
) -> None:
    first, second = site.relays
    lane, made = first.add_lane(plain), first.create_key(name="full", captureBodies=True)
    spool = site.control.data_dir / "spool" / "bodies"
    filler = spool / "filler.new"
    with filler.open("wb") as file:
        file.truncate(256 * 1024 * 1024)
    answer = chat_with_key(second, made["key"], lane.body())
    assert answer.status_code == 200
    eventually(lambda: counted_requests(first, made["id"]) == 1, "it is counted", within_s=20)
    eventually(
        lambda: "kept bodies wait at this node" in second.log, "the log says it", within_s=20
    )
    path = f"/api/usage/logs/{answer.headers['x-gateway-request-id']}/body"
    assert first.admin.get(path).status_code == 404
    assert list((second.data_dir / "spool" / "bodies").iterdir())
    filler.unlink()
    eventually(lambda: first.admin.get(path).status_code == 200, "it is brought", within_s=20)
    assert second.log.count("kept bodies wait at this node") == 1


def test_a_limit_counts_what_was_used_before_a_node_was_killed(site: Site, plain: Plain) -> None:
    """The past that a new worker asks for is whole only when its node has brought what the one before it left."""
    first, _ = site.relays
    lane = first.add_lane(plain)
    key = first.create_key(name="limited", rateLimits=[{"limit": 5, "window": 86_400}])["key"]
    assert [chat_with_key(first, key, lane.body()).status_code for _ in range(3)] == [200] * 3
    first.kill_all()
    first.start()

    def let_through() -> bool:
        answer = chat_with_key(first, key, lane.body())
        assert answer.status_code in (200, 503), answer.text
        return answer.status_code == 200

    # Until the past is known, a key with limits is told to come back.
    eventually(let_through, "the past is known", within_s=20)
    assert [chat_with_key(first, key, lane.body()).status_code for _ in range(3)] == [200, 429, 429]


def test_a_segment_that_is_brought_again_counts_once(site: Site, plain: Plain) -> None:
    """As when the answer to it was lost: at once, and when the log of usage has it."""
    first, _ = site.relays
    lane, made = first.add_lane(plain), first.create_key(name="twice")
    relay = site.authority.issue("relay-again", "DNS:relay")
    trusting = ssl.create_default_context(cafile=site.authority.certificate)
    trusting.load_cert_chain(relay.certificate, relay.key)
    assert chat_with_key(first, made["key"], lane.body()).status_code == 200
    eventually(lambda: counted_requests(first, made["id"]) == 1, "it is recorded", within_s=20)
    line = line_of_log(site.database_url, made["id"])
    name = "feedfacefeedface-1"

    def bring(named: str = name) -> int:
        return httpx.post(
            f"{site.control_url}/internal/node/segments",
            params={"name": named},
            content=line,
            headers={"x-fairlead-link": TOKEN, "content-type": "application/octet-stream"},
            verify=trusting,
            timeout=15,
        ).status_code

    before = counted_requests(first, made["id"])
    assert [bring(), bring()] == [204, 204]
    eventually(lambda: counted_requests(first, made["id"]) == before + 1, "it counts", within_s=20)
    time.sleep(2)
    assert bring() == 204
    time.sleep(2)
    assert counted_requests(first, made["id"]) == before + 1
    assert not list((site.control.data_dir / "spool").glob("feedface*"))
    assert [bring("../../state"), bring("a/b"), bring("")] == [400, 400, 400]


def test_a_wrong_token_and_another_authority_are_refused(site: Site) -> None:
    other = Authority(site.folder / "other-authority")
    cases = {
        "token": ({"FAIRLEAD_NODE_TOKEN": "x" * 40}, "refuses the node token"),
        "authority": ({"FAIRLEAD_NODE_CA": str(other.certificate)}, "CERTIFICATE_VERIFY_FAILED"),
        "certificate": ({"FAIRLEAD_NODE_CERTIFICATE": "", "FAIRLEAD_NODE_KEY": ""}, "not reached"),
    }
    for name, (changed, said) in cases.items():
        gateway = site.launched(f"refused-{name}", **changed)
        try:
            eventually(lambda g=gateway, s=said: s in g.log, f"{name}: {said}", within_s=30)  # type: ignore[misc]
            assert "fairlead ready" not in gateway.log
            assert "x" * 40 not in gateway.log
        finally:
            gateway.stop()


def test_control_says_nothing_without_tls_token_and_certificate(site: Site) -> None:
    host, _, port = site.control_url.removeprefix("https://").partition(":")
    with socket.create_connection((host, int(port)), timeout=15) as plaintext:
        plaintext.sendall(b"POST /internal/link HTTP/1.1\r\nhost: control\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            assert not plaintext.recv(1000).startswith(b"HTTP/")
    trusting = ssl.create_default_context(cafile=site.authority.certificate)
    with pytest.raises((httpx.HTTPError, ssl.SSLError)):
        httpx.get(f"{site.control_url}/api/keys", verify=trusting, timeout=15)
    relay = site.authority.issue("relay-of-test", "DNS:relay")
    trusting.load_cert_chain(relay.certificate, relay.key)
    principal = {"x-fairlead-principal": '{"kind":"local","scopes":["admin"]}'}
    for shown in ({}, {"x-fairlead-link": "y" * 40}, {"x-fairlead-link": TOKEN[:-1]}):
        answer = httpx.get(
            f"{site.control_url}/api/keys", headers=principal | shown, verify=trusting, timeout=15
        )
        assert answer.status_code == 403, answer.text


def test_the_node_token_and_other_credentials_open_their_own_doors_only(site: Site) -> None:
    """At a node's public port the token is no credential, and at the port of controls nothing else is."""
    relay = site.relays[0]
    tried = [
        ("/v1/models", {"authorization": f"Bearer {TOKEN}"}),
        ("/v1/models", {"x-api-key": TOKEN}),
        ("/v1beta/models", {"x-goog-api-key": TOKEN}),
        ("/api/keys", {"authorization": f"Bearer {TOKEN}"}),
        ("/api/keys", {"x-gateway-cli-token": TOKEN}),
        ("/api/keys", {"cookie": f"auth_token={TOKEN}"}),
        ("/api/keys", {"x-fairlead-link": TOKEN}),
    ]
    client = relay.client()
    for path, headers in tried:
        assert client.get(path, headers=headers).status_code in {401, 403}, headers
    assert client.get("/v1beta/models", params={"key": TOKEN}).status_code in {401, 403}
    managing = relay.create_key(scopes=["manage"])
    others = (relay.cli_token, managing["key"], managing["id"], KEY, TOKEN.upper())
    context = ssl.create_default_context(cafile=str(site.authority.certificate))
    issued = site.authority.issue("doors", "DNS:relay")
    context.load_cert_chain(issued.certificate, issued.key)
    with httpx.Client(base_url=site.control_url, verify=context, trust_env=False) as nodes:
        for value in others:
            answer = nodes.get("/api/keys", headers={"x-fairlead-link": value})
            assert answer.status_code == 403, answer.text
        known = nodes.get("/api/keys", headers={"x-fairlead-link": TOKEN})
        assert "from the relay only" not in known.text


def test_internal_headers_from_outside_are_stripped(site: Site) -> None:
    for gateway in site.relays:
        answer = httpx.get(
            f"{gateway.url}/api/keys",
            headers={
                "x-fairlead-link": TOKEN,
                "x-fairlead-principal": '{"kind":"local","scopes":["admin"]}',
            },
            timeout=15,
        )
        assert answer.status_code == 401, answer.text
        assert httpx.post(f"{gateway.url}/internal/link", json={}, timeout=15).status_code in (
            401,
            404,
        )
