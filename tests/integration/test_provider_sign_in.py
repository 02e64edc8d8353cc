"""Sign-in at a provider by OAuth: in a browser or on another device, refreshed before it ends, used at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.chat import CHAT
from tests.support.oauth_server import CLIENT_SECRET, OAuthServer
from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane, expect
from tests.support.upstream import Upstream, completion, reply


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as scripted:
        scripted.script(reply(completion("hello")))
        yield scripted


@pytest.fixture
def server() -> Iterator[OAuthServer]:
    with OAuthServer() as running:
        yield running


def lane_at(gateway: Gateway, upstream: Upstream, server: OAuthServer) -> Lane:
    """A provider without connections, whose people sign in at that server."""
    lane = gateway.add_lane(upstream, connections=0)
    gateway.canaries += [CLIENT_SECRET, "token-canary"]
    expect(act(lane, "settings", server.section(), method="PUT"), 200)
    return lane


def act(lane: Lane, action: str, body: Any = None, method: str = "POST") -> Any:
    return lane.gateway.admin.request(method, f"/api/oauth/{lane.prefix}/{action}", json=body)


def sign_in(lane: Lane, server: OAuthServer, **target: str) -> dict[str, Any]:
    begun = expect(act(lane, "authorize", target), 200)
    back = server.sign_in(begun["authorizationUrl"])
    made: dict[str, Any] = expect(act(lane, "exchange", {"code": back}), 200)["connection"]
    return made


def shown(lane: Lane, connection_id: str) -> dict[str, Any]:
    found: dict[str, Any] = expect(lane.gateway.admin.get(f"/api/providers/{connection_id}"), 200)
    connection: dict[str, Any] = found["connection"]
    return connection


def called_with(lane: Lane) -> str:
    """The credential that one call goes out with."""
    answer = lane.gateway.caller.post(CHAT, json=lane.body())
    assert answer.status_code == 200, answer.text
    return str(lane.upstream.last.bearer)


def test_a_person_signs_in_with_a_browser(
    gateway: Gateway, upstream: Upstream, server: OAuthServer
) -> None:
    lane = lane_at(gateway, upstream, server)
    begun = expect(act(lane, "authorize", {"name": "mine"}), 200)
    assert "code_challenge_method=S256" in begun["authorizationUrl"]
    back = server.sign_in(begun["authorizationUrl"])
    made = expect(act(lane, "exchange", {"code": back}), 200)["connection"]
    assert (made["name"], made["authType"], made["apiKey"]) == ("mine", "oauth", "***")
    assert called_with(lane) == server.newest_token
    # A state is used once.
    assert act(lane, "exchange", {"code": back}).json()["error"]["param"] == "state"
    # By hand, the token is refreshed at once, and used without a restart.
    before = server.newest_token
    expect(act(lane, "refresh", {"connectionId": made["id"]}), 200)
    assert server.newest_token != before
    assert called_with(lane) == server.newest_token
    settings = expect(act(lane, "settings", method="GET"), 200)
    assert settings["section"]["clientSecret"] == "***"
    assert settings["signIns"][0]["status"] == "active"
    # A key of one's own takes the sign-in's place, and nothing of it is left.
    path = f"/api/providers/{made['id']}"
    expect(gateway.admin.put(path, json={"priority": 3}), 200)
    assert called_with(lane) == server.newest_token
    key = {"authType": "apikey", "apiKey": "sk-upstream-canary-own"}
    expect(gateway.admin.put(path, json=key), 200)
    assert expect(act(lane, "settings", method="GET"), 200)["signIns"] == []
    wrong = gateway.admin.put(path, json={"authType": "oauth"})
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "authType")


def test_a_person_signs_in_on_another_device(
    gateway: Gateway, upstream: Upstream, server: OAuthServer
) -> None:
    lane = lane_at(gateway, upstream, server)
    begun = expect(act(lane, "device-code", {}), 200)
    assert begun["verificationUri"] == f"{server.url}/device"
    state = {"state": begun["state"]}
    too_soon = act(lane, "poll", state)
    assert too_soon.status_code == 429
    assert too_soon.headers["retry-after"]

    def polled() -> dict[str, Any] | None:
        answer = act(lane, "poll", state)
        return None if answer.status_code == 429 else expect(answer, 200)

    pending = eventually(polled, "the provider may be asked", every_s=0.1)
    assert (pending["status"], pending["connection"]) == ("pending", None)
    server.approve(begun["userCode"])
    done = eventually(polled, "the provider may be asked again", every_s=0.1)
    assert done["status"] == "done"
    assert called_with(lane) == server.newest_token
    assert act(lane, "poll", state).json()["error"]["param"] == "state"
    denied = expect(act(lane, "device-code", {}), 200)
    server.approve(denied["userCode"], approved=False)
    state = {"state": denied["state"]}
    assert eventually(polled, "an answer", every_s=0.1)["status"] == "denied"


def test_tokens_are_refreshed_before_they_end(gateway: Gateway, upstream: Upstream) -> None:
    with OAuthServer(lifetime_s=4) as server:
        lane = lane_at(gateway, upstream, server)
        made = sign_in(lane, server)
        first = called_with(lane)
        eventually(lambda: called_with(lane) != first, "another token is used", within_s=10)
        assert shown(lane, made["id"])["state"] == "active"
        # The service fails for a while: the sign-in waits, and is refreshed once it works.
        server.refuse_with = 503
        sign_ins = eventually(
            lambda: [each for each in read_sign_ins(lane) if each["failures"]], "a failure"
        )
        assert "503" in sign_ins[0]["lastError"]
        server.refuse_with = None
        count = len(server.core.access_tokens)
        eventually(lambda: len(server.core.access_tokens) > count, "a refresh", within_s=15)
        # The grant is gone: the connection is of no use until somebody signs in again.
        server.refuse_with = "invalid_grant"
        eventually(
            lambda: shown(lane, made["id"])["testStatus"] == "expired", "it ends", within_s=15
        )
        eventually(lambda: shown(lane, made["id"])["state"] == "terminal", "workers say so")
        eventually(
            lambda: gateway.caller.post(CHAT, json=lane.body()).status_code == 503,
            "nobody serves with it",
            within_s=gateway.told_within_s,
        )
        asked = server.asked
        server.refuse_with = None
        server.core.lifetime_s = 3600
        again = sign_in(lane, server, connectionId=made["id"])
        assert (again["id"], again["testStatus"]) == (made["id"], None)
        assert server.asked == asked + 1, "a sign-in that has ended is refreshed no more"
        eventually(lambda: shown(lane, made["id"])["state"] == "active", "it serves again")
        assert called_with(lane) == server.newest_token


def read_sign_ins(lane: Lane) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = expect(act(lane, "settings", method="GET"), 200)["signIns"]
    return found


def test_tokens_are_taken_in(gateway: Gateway, upstream: Upstream, server: OAuthServer) -> None:
    lane = lane_at(gateway, upstream, server)
    sign_in(lane, server)
    refresh_token = next(iter(server.core.refresh_tokens))
    other = lane_at(gateway, upstream, server)
    made = expect(act(other, "import", {"refreshToken": refresh_token}), 200)["connection"]
    assert called_with(other) == server.newest_token
    taken = {"connectionId": made["id"], "accessToken": "token-canary-own", "expiresIn": 3600}
    expect(act(other, "import", taken), 200)
    assert called_with(other) == "token-canary-own"
    refused = act(other, "import", {"refreshToken": "token-canary-unknown"})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "provider")


@pytest.mark.parametrize(
    ("action", "body", "param"),
    [
        ("authorize", {"connectionId": "x", "name": "y"}, None),
        ("authorize", {"connectionId": "no-such"}, "connectionId"),
        ("authorize", {"color": "red"}, "color"),
        ("exchange", {"code": "c"}, "state"),
        ("exchange", {"code": "c", "state": "unknown"}, "state"),
        ("exchange", {"code": "https://a.example/?error=access_denied&state=s"}, "code"),
        ("poll", {"state": "unknown"}, "state"),
        ("poll", {}, "state"),
        ("import", {}, None),
        ("import", {"refreshToken": "t", "expiresIn": 5}, None),
        ("refresh", {"connectionId": "no-such"}, "connectionId"),
    ],
)
def test_a_wrong_body_changes_nothing(
    gateway: Gateway,
    upstream: Upstream,
    server: OAuthServer,
    action: str,
    body: dict[str, Any],
    param: str | None,
) -> None:
    lane = lane_at(gateway, upstream, server)
    answer = act(lane, action, body)
    assert answer.status_code in (400, 404), answer.text
    assert param is None or answer.json()["error"]["param"] == param, answer.text
    assert server.asked == 0
    assert read_sign_ins(lane) == []
    plain = server.section(tokenUrl="http://tokens.example/token")
    refused = act(lane, "settings", plain, method="PUT")
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "tokenUrl")
    moved = server.section(tokenUrl="https://elsewhere.example/token", clientSecret="***")
    refused = act(lane, "settings", moved, method="PUT")
    assert refused.json()["error"]["param"] == "clientSecret"


@pytest.mark.parametrize(
    "kills",
    [
        pytest.param(1, id="short"),
        pytest.param(5, marks=[pytest.mark.slow, pytest.mark.timeout(400)], id="long"),
    ],
)
def test_a_refresh_outlives_kill_9(
    gateways: Callable[..., Gateway], upstream: Upstream, kills: int
) -> None:
    """Killed between the provider's answer and its storage: the token is asked for again, and calls go on."""
    gateway = gateways()
    with OAuthServer(lifetime_s=6) as server:
        # As of servers that let a refresh token be used again for a moment (RFC 9700, section 4.14.2).
        server.core.keeps_old = True
        lane = lane_at(gateway, upstream, server)
        made = sign_in(lane, server)
        for _ in range(kills):
            outlive_kill(lane, server)
        assert shown(lane, made["id"])["testStatus"] != "expired"


def outlive_kill(lane: Lane, server: OAuthServer) -> None:
    """Kills control while the answer to a refresh is on its way, and sees that the next one is used."""
    asked = server.asked
    server.held.clear()
    eventually(lambda: server.asked > asked, "a refresh is under way", within_s=15)
    lane.gateway.control.kill()
    given = len(server.core.access_tokens)
    server.held.set()
    eventually(lambda: len(server.core.access_tokens) > given, "it is asked again", within_s=60)

    def is_used() -> bool:
        return called_with(lane) in server.core.access_tokens[given:]

    eventually(is_used, "the new token is used", within_s=20)
