"""Links in answers lead back to the gateway by the address that their reader can use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from tests.support.agents import make_agent
from tests.support.process import free_port
from tests.support.processes import Gateway, expect, start_gateway
from tests.support.upstream import Upstream

FORWARDED = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "gw.example"}
Start = Callable[..., Gateway]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(
            start_gateway(
                tmp_path_factory.mktemp("links"),
                FAIRLEAD_ALLOW_PRIVATE_FETCH="127.0.0.0/8",
                **settings,
            )
        )


def links(gateway: Gateway, headers: dict[str, str]) -> list[str]:
    """What begins a job, a crawl, a session's list and an agent's card say."""
    nowhere = f"http://127.0.0.1:{free_port()}/"
    caller = httpx.Client(
        base_url=gateway.url, trust_env=False, headers={"x-api-key": gateway.key} | headers
    )
    with Upstream() as upstream, caller:
        lane = gateway.add_lane(upstream)
        agent = make_agent(gateway, lane.model)
        card = expect(caller.get(f"{agent['path']}/.well-known/agent-card.json"), 200)
        begun: Any = caller.post("/api/scrape/async", json={"url": nowhere})
        crawled: Any = caller.post("/api/crawl", json={"url": nowhere, "limit": 1})
        assert begun.is_success, begun.text
        assert crawled.is_success, crawled.text
        return [card["url"], begun.json()["url"], crawled.json()["url"]]


def test_behind_a_trusted_proxy_they_have_its_name(start: Start) -> None:
    gateway = start(SERVICE_TRUST_PROXY="true")
    for url in links(gateway, FORWARDED):
        assert url.startswith("https://gw.example/"), url
    for url in links(gateway, {}):
        assert url.startswith(f"{gateway.url}/"), url


def test_the_public_base_goes_before_whatever_a_request_says(start: Start) -> None:
    gateway = start(SERVICE_PUBLIC_BASE_URL="https://public.example/base/")
    for url in links(gateway, {**FORWARDED, "Host": "evil.example"}):
        assert url.startswith("https://public.example/base/"), url


def test_without_a_trusted_proxy_nobody_names_another_host(loopback_gateway: Gateway) -> None:
    for url in links(loopback_gateway, FORWARDED):
        assert url.startswith(f"{loopback_gateway.url}/"), url
