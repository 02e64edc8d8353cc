"""Addresses that may call the gateway, judged before any credential, over both fronts, and those of keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.support.owner import OWNER_PASSWORD
from tests.support.polling import eventually
from tests.support.processes import Gateway, expect
from tests.support.tls import NO_AUTHORITIES

pytestmark = pytest.mark.both_fronts

FILTER = "/api/settings/ip-filter"
EMPTY = {"enabled": False, "mode": "blacklist", "blacklist": [], "whitelist": []}
FRIEND, STRANGER = "198.51.100.7", "203.0.113.9"


@pytest.fixture(scope="module")
def gateway(proxied_gateway: Gateway) -> Gateway:
    return proxied_gateway


@pytest.fixture(autouse=True)
def as_found(gateway: Gateway) -> Iterator[None]:
    yield
    shown = expect(gateway.admin.put(FILTER, json=EMPTY), 200)
    for ban in shown["bans"]:
        expect(gateway.admin.put(FILTER, json={"removeBan": ban["ip"]}), 200)


def call(
    gateway: Gateway, address: str | None, path: str = "/v1/models", **headers: str
) -> httpx.Response:
    """A request as if from that address; None is this machine."""
    forwarded = {} if address is None else {"x-forwarded-for": f"192.0.2.66, {address}"}
    return httpx.get(
        gateway.url + path, headers={**forwarded, **headers}, timeout=20, verify=NO_AUTHORITIES
    )


def judged(gateway: Gateway, address: str | None) -> str:
    """`refused` by the filter, or `asked` for a credential."""
    answer = call(gateway, address)
    if answer.status_code == 403:
        assert answer.json()["error"]["message"] == "This address may not call the gateway."
        return "refused"
    assert answer.status_code == 401, answer.text
    return "asked"


def test_lists_are_in_force_before_any_credential(gateway: Gateway) -> None:
    change = {"enabled": True, "addBlacklist": "203.0.113.0/24"}
    shown = expect(gateway.admin.put(FILTER, json=change), 200)
    assert shown["blacklist"] == ["203.0.113.0/24"]
    assert (judged(gateway, STRANGER), judged(gateway, FRIEND)) == ("refused", "asked")
    key = {"authorization": f"Bearer {gateway.create_key()['key']}"}
    assert call(gateway, STRANGER, **key).status_code == 403
    assert call(gateway, STRANGER, "/health").status_code == 403
    assert call(gateway, STRANGER, "/no-such-path").status_code == 403
    assert call(gateway, FRIEND, **key).status_code == 200
    whitelist = {"mode": "whitelist", "whitelist": [FRIEND, "2001:db8::/32"]}
    expect(gateway.admin.put(FILTER, json=whitelist), 200)
    assert (judged(gateway, STRANGER), judged(gateway, FRIEND)) == ("refused", "asked")
    assert (judged(gateway, "2001:db8::7"), judged(gateway, "2001:db9::7")) == ("asked", "refused")
    # This machine is on no list, and is let in.
    assert judged(gateway, None) == "asked"
    expect(gateway.admin.put(FILTER, json={"enabled": False}), 200)
    assert judged(gateway, STRANGER) == "asked"


def test_a_ban_ends_by_itself(gateway: Gateway) -> None:
    ban = {"ip": STRANGER, "durationMs": 3_000, "reason": "too loud"}
    shown = expect(gateway.admin.put(FILTER, json={"tempBan": ban}), 200)
    assert [(each["ip"], each["reason"]) for each in shown["bans"]] == [(STRANGER, "too loud")]
    assert (judged(gateway, STRANGER), judged(gateway, FRIEND)) == ("refused", "asked")
    eventually(lambda: judged(gateway, STRANGER) == "asked", "the ban ends", within_s=8)
    assert expect(gateway.admin.get(FILTER), 200)["bans"] == []
    forever = {"ip": FRIEND, "durationMs": 86_400_000}
    expect(gateway.admin.put(FILTER, json={"tempBan": forever}), 200)
    expect(gateway.admin.put(FILTER, json={"removeBan": FRIEND}), 200)
    assert judged(gateway, FRIEND) == "asked"


def test_nobody_locks_themselves_out(gateway: Gateway, gateways: Callable[..., Gateway]) -> None:
    """A key may not change who comes in at all, and a person not so that they are shut out themselves."""
    manager = gateway.create_key(scopes=["admin"])["key"]
    headers = {"authorization": f"Bearer {manager}", "x-forwarded-for": FRIEND}
    change = {"enabled": True, "mode": "whitelist", "whitelist": [STRANGER]}
    answer = httpx.put(gateway.url + FILTER, json=change, headers=headers, verify=NO_AUTHORITIES)
    assert answer.status_code == 403
    theirs = gateways(SERVICE_TRUST_PROXY="true", INITIAL_PASSWORD=OWNER_PASSWORD)
    with theirs.client(headers={"x-forwarded-for": FRIEND, "origin": theirs.url}) as owner:
        expect(owner.post("/api/auth/login", json={"password": OWNER_PASSWORD}), 200)
        refused = expect(owner.put(FILTER, json=change), 409)
        assert FRIEND in refused["error"]["message"]
    assert judged(gateway, FRIEND) == "asked"
    # From this machine everything may be set, loopback on a blacklist too, and it is let in all the same.
    change = {"enabled": True, "blacklist": ["127.0.0.0/8", "::1"]}
    expect(gateway.admin.put(FILTER, json=change), 200)
    assert judged(gateway, None) == "asked"


def test_a_key_is_used_from_its_own_addresses(gateway: Gateway) -> None:
    made = gateway.create_key(ipAllowlist=["198.51.100.0/24", "2001:db8::1"])
    key = {"authorization": f"Bearer {made['key']}"}
    assert made["ipAllowlist"] == ["198.51.100.0/24", "2001:db8::1"]
    for address, status in ((FRIEND, 200), ("2001:db8::1", 200), (STRANGER, 403), (None, 403)):
        answer = call(gateway, address, **key)
        assert answer.status_code == status, address
        if status == 403:
            assert answer.json()["error"]["param"] == "ipAllowlist"
    expect(gateway.admin.patch(f"/api/keys/{made['id']}", json={"ipAllowlist": ["127.0.0.1"]}), 200)
    assert call(gateway, None, **key).status_code == 200
    expect(gateway.admin.patch(f"/api/keys/{made['id']}", json={"ipAllowlist": []}), 200)
    assert call(gateway, STRANGER, **key).status_code == 200


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, None),
        ({"blacklist": ["10.0.0.1/8"]}, "blacklist[0]"),
        ({"blacklist": "10.0.0.0/8"}, "blacklist"),
        ({"addWhitelist": ["x"]}, "addWhitelist"),
        ({"mode": "greylist"}, "mode"),
        ({"enabled": "yes"}, "enabled"),
        ({"tempBan": {"ip": FRIEND}}, "tempBan.durationMs"),
        ({"tempBan": {"ip": FRIEND, "durationMs": 1}}, "tempBan.durationMs"),
        ({"color": "red", "enabled": True}, "color"),
    ],
)
def test_a_wrong_body_changes_nothing(
    gateway: Gateway, body: dict[str, Any], param: str | None
) -> None:
    error = expect(gateway.admin.put(FILTER, json=body), 400)["error"]
    assert param is None or error["param"].startswith(param), error
    shown = expect(gateway.admin.get(FILTER), 200)
    assert {name: shown[name] for name in EMPTY} == EMPTY
