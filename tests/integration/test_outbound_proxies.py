"""Calls of providers through outbound proxies: the most specific level wins, nothing goes past one that fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.chat import CHAT
from tests.support.process import free_port
from tests.support.processes import Gateway, Lane, expect
from tests.support.proxies import PASSWORD, USERNAME, RecordingProxy, debian_proxy
from tests.support.upstream import Upstream, completion, reply

PROXY = "/api/settings/proxy"


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as scripted:
        scripted.script(reply(completion("hello")))
        yield scripted


def set_proxy(gateway: Gateway, proxy: dict[str, Any] | None, **level: str) -> dict[str, Any]:
    shown: dict[str, Any] = expect(gateway.admin.put(PROXY, json={**level, "proxy": proxy}), 200)
    return shown


@contextmanager
def said(gateway: Gateway, proxy: dict[str, Any], **level: str) -> Iterator[dict[str, Any]]:
    """What a level says, taken back at the end: gateways are shared."""
    shown = set_proxy(gateway, proxy, **level)
    try:
        yield shown
    finally:
        set_proxy(gateway, None, **level)


def ask(lane: Lane, model: str | None = None, key: str | None = None) -> tuple[int, str | None]:
    """Status and error code of one call."""
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    body = lane.body() | ({} if model is None else {"model": model})
    answer = lane.gateway.caller.post(CHAT, json=body, headers=headers)
    return answer.status_code, answer.json().get("error", {}).get("code")


@pytest.mark.parametrize("program", ["tinyproxy", "microsocks"])
def test_debians_proxies_carry_calls_and_tests(
    gateway: Gateway, upstream: Upstream, tmp_path: Path, program: str
) -> None:
    lane = gateway.add_lane(upstream)
    with debian_proxy(program, tmp_path) as proxy:
        gateway.canaries.append(PASSWORD)
        level = {"level": "provider", "id": lane.prefix}
        with said(gateway, proxy.fields(), **level) as shown:
            assert shown["id"] == lane.node["id"]
            assert shown["proxy"]["password"] == "***"
            assert ask(lane) == (200, None)
            tested = expect(gateway.admin.post(f"{PROXY}/test", json=level), 200)
            assert tested["success"] is True
            assert tested["proxyUrl"] == f"{proxy.type}://***@127.0.0.1:{proxy.port}"
            # Sent back as it was shown, the password stays.
            set_proxy(gateway, shown["proxy"], **level)
            assert ask(lane) == (200, None)
            set_proxy(gateway, proxy.fields(password="wrong"), **level)
            assert ask(lane) == (502, "proxy_failed")
            refused = expect(gateway.admin.post(f"{PROXY}/test", json=level), 200)
            assert (refused["success"], refused["errorKind"]) == (False, "proxy_failed")


def test_the_most_specific_level_wins(gateway: Gateway, upstream: Upstream) -> None:
    lane = gateway.add_lane(upstream)
    key = gateway.create_key()
    name = f"through-{lane.prefix}"
    combo = {"name": name, "models": [{"model": lane.model}]}
    expect(gateway.admin.post("/api/combos", json=combo), 201)
    levels: dict[str, dict[str, str]] = {
        "global": {},
        "provider": {"level": "provider", "id": lane.node["id"]},
        "combo": {"level": "combo", "id": name},
        "key": {"level": "key", "id": key["id"]},
    }
    with ExitStack() as open_until_the_end:
        proxies = {level: RecordingProxy("socks5") for level in levels}
        for proxy in proxies.values():
            open_until_the_end.enter_context(proxy)

        def way(model: str | None = None, caller: str | None = None) -> str:
            before = {level: len(proxy.tunnels) for level, proxy in proxies.items()}
            assert ask(lane, model, caller) == (200, None)
            went = [level for level, proxy in proxies.items() if len(proxy.tunnels) > before[level]]
            return " ".join(went) or "direct"

        assert way() == "direct"
        for level, where in levels.items():
            open_until_the_end.enter_context(
                said(gateway, proxies[level].running.fields(), **where)
            )
            expected = {"global": "global", "provider": "provider"}.get(level)
            if expected is not None:
                assert way() == expected
            elif level == "combo":
                assert way(name) == "combo"
                assert way(caller=key["key"]) != "key"
            else:
                assert way(name, key["key"]) == "key"
        assert upstream.connections == 1 + sum(len(proxy.tunnels) for proxy in proxies.values())
        configured = expect(gateway.admin.get(PROXY), 200)["configured"]
        assert [each["level"] for each in configured] == ["global", "provider", "combo", "key"]
        set_proxy(gateway, {"type": "direct"}, **levels["key"])
        assert way(name, key["key"]) == "direct"


def test_a_key_that_is_deleted_takes_its_proxy_with_it(gateway: Gateway) -> None:
    key = gateway.create_key()
    set_proxy(gateway, {"type": "direct"}, level="key", id=key["id"])
    expect(gateway.admin.delete(f"/api/keys/{key['id']}"), 200)
    configured = expect(gateway.admin.get(PROXY), 200)["configured"]
    assert key["id"] not in [each["id"] for each in configured]


def test_nothing_goes_past_a_proxy_that_is_down(gateway: Gateway, upstream: Upstream) -> None:
    lane = gateway.add_lane(upstream)
    with Upstream() as other_upstream:
        other_upstream.script(reply(completion("other")))
        other = gateway.add_lane(other_upstream)
        models = [{"model": lane.model}, {"model": other.model}]
        name = f"over-{lane.prefix}"
        expect(gateway.admin.post("/api/combos", json={"name": name, "models": models}), 201)
        port = free_port()
        down = {"type": "http", "host": "127.0.0.1", "port": port}
        level = {"level": "provider", "id": lane.node["id"]}
        with said(gateway, down, **level):
            before = upstream.connections
            assert ask(lane) == (502, "proxy_failed")
            connection = lane.connections[0]["id"]
            tested = expect(gateway.admin.post(f"/api/providers/{connection}/test"), 200)
            assert tested["diagnosis"] == {"type": "proxy"}
            assert upstream.connections == before, "the provider was called directly"
            # The next target of a combo is tried, and the connection behind the proxy is blamed for nothing.
            assert ask(lane, name) == (200, None)
            assert other_upstream.connections == 1
            shown = expect(gateway.admin.get(f"/api/providers/{connection}"), 200)["connection"]
            assert shown["state"] == "active"
        with RecordingProxy() as proxy:
            proxy.status = 403
            with said(gateway, proxy.running.fields(), **level):
                assert ask(lane) == (502, "proxy_failed")
                proxy.status = 502
                assert ask(lane) == (502, "upstream_refused")
                assert upstream.connections == before


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"level": "planet", "proxy": None}, "level"),
        ({"level": "key", "proxy": None}, "id"),
        ({"id": "x", "proxy": None}, "id"),
        ({}, "proxy"),
        ({"proxy": {"type": "https", "host": "a.example", "port": 1}}, "proxy.type"),
        ({"proxy": {"type": "http", "host": "a.example"}}, "proxy"),
        ({"proxy": {"type": "http", "host": "169.254.169.254", "port": 1}}, "proxy.host"),
        ({"proxy": {"type": "http", "host": "a.example", "port": 70_000}}, "proxy.port"),
        ({"proxy": {"type": "direct", "host": "a.example", "port": 1}}, "proxy"),
        (
            {
                "proxy": {
                    "type": "http",
                    "host": "a.example",
                    "port": 1,
                    "username": USERNAME,
                    "password": "***",
                }
            },
            "proxy.password",
        ),
        ({"proxy": None, "color": "red"}, "color"),
    ],
)
def test_a_wrong_body_changes_nothing(gateway: Gateway, body: dict[str, Any], param: str) -> None:
    before = expect(gateway.admin.get(PROXY), 200)
    error = expect(gateway.admin.put(PROXY, json=body), 400)["error"]
    assert error["param"] == param
    assert expect(gateway.admin.get(PROXY), 200) == before
    missing = {"level": "combo", "id": "no-such-combo", "proxy": None}
    assert expect(gateway.admin.put(PROXY, json=missing), 404)["error"]["param"] == "id"
