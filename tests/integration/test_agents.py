"""Agents of a running gateway: who may speak with them, what they do, and what outlives whom.

The issuer runs inside control, so its word is asked for without a way between.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from authlib.integrations.httpx_client import AsyncOAuth2Client

from tests.support.agents import (
    SCOPE,
    key_id,
    make_agent,
    register,
    rpc,
    say,
    start_issuer,
    token_of,
)
from tests.support.external_issuer import token_that
from tests.support.polling import eventually
from tests.support.process import free_port
from tests.support.processes import Gateway, Lane, start_gateway
from tests.support.tls import NO_AUTHORITIES
from tests.support.upstream import Gate, Upstream, completion, reply

ROOT = Path(__file__).resolve().parents[2]
DID = "did:fairlead:test:caller:7c0f4d2e-0d5c-4b1e-9b60-8a2d1b0f9a11"
SECRET = "canary-of-a-client-secret-32-bytes-long"


class Box:
    """A gateway with the issuer inside and an upstream behind."""

    def __init__(self, gateway: Gateway, lane: Lane, url: str, admin_url: str) -> None:
        self.gateway, self.lane, self.url, self.admin_url = gateway, lane, url, admin_url
        self.http = gateway.client()

    def token(self, scope: str | None = None, client_id: str = DID) -> str:
        return token_of(self.url, client_id, SECRET, scope)

    def agent(self, **fields: Any) -> str:
        model = fields.pop("model", self.lane.model)
        return str(make_agent(self.gateway, model, **fields)["path"])


def issuer_settings() -> tuple[dict[str, str], str, str]:
    port, admin_port = free_port(), free_port()
    settings = {
        "ISSUER__ENABLED": "true",
        "ISSUER__PORT": str(port),
        "ISSUER__ADMIN_PORT": str(admin_port),
        "AUTH__ENABLED": "true",
    }
    return settings, f"http://127.0.0.1:{port}", f"http://127.0.0.1:{admin_port}"


def is_up(admin_url: str) -> bool:
    try:
        ready = f"{admin_url}/health/ready"
        return httpx.get(ready, trust_env=False, verify=NO_AUTHORITIES).status_code == 200
    except httpx.HTTPError:
        return False


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    settings, url, admin_url = issuer_settings()
    with (
        Upstream() as upstream,
        start_gateway(tmp_path_factory.mktemp("agents"), **settings) as gateway,
    ):
        eventually(lambda: is_up(admin_url), "the issuer inside control answers", within_s=15)
        gateway.canaries.append(SECRET)
        register(admin_url, DID, SECRET)
        yield Box(gateway, gateway.add_lane(upstream), url, admin_url)
        gateway.assert_keeps_secrets()


def error_of(answer: httpx.Response) -> tuple[int, int]:
    document = answer.json()
    assert document["jsonrpc"] == "2.0"
    assert document["error"]["message"]
    return answer.status_code, document["error"]["code"]


# ------------------------------------------------------------------------------------ who may


def test_a_token_for_somebody_else_opens_no_agent(box: Box) -> None:
    """Also where who shows it calls the gateway by the name that the token has."""
    path, other = box.agent(), box.agent()
    audience = [f"{box.gateway.url}{path}", "https://elsewhere.example"]
    client_id = f"{DID[:-2]}99"
    body = {"client_id": client_id, "client_secret": SECRET, "scope": SCOPE, "audience": audience}
    assert httpx.post(
        f"{box.admin_url}/admin/clients", json=body, trust_env=False, verify=NO_AUTHORITIES
    ).is_success

    def token(wanted: str) -> str:
        form = {
            "grant_type": "client_credentials",
            "client_id": client_id,
            "client_secret": SECRET,
            "audience": wanted,
        }
        answer = httpx.post(
            f"{box.url}/oauth2/token", data=form, trust_env=False, verify=NO_AUTHORITIES
        )
        assert answer.status_code == 200, answer.text
        return str(answer.json()["access_token"])

    here, elsewhere = token(audience[0]), token(audience[1])
    assert rpc(box.http, path, "message/send", say("x"), here).status_code == 200
    for agent, shown in ((other, here), (path, elsewhere)):
        refused = rpc(box.http, agent, "message/send", say("x"), shown)
        assert error_of(refused) == (401, -32010)
        assert 'error="invalid_token"' in refused.headers["www-authenticate"]
    call = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": say("x")}
    headers = {"authorization": f"Bearer {elsewhere}", "host": "elsewhere.example"}
    assert box.http.post(path, json=call, headers=headers).status_code == 401


def test_a_token_of_authlibs_client_lets_in(box: Box) -> None:
    """authlib judges the token endpoint: it refuses what is not a token response."""
    path = box.agent()

    async def fetch() -> dict[str, Any]:
        async with AsyncOAuth2Client(
            DID,
            SECRET,
            scope=SCOPE,
            token_endpoint_auth_method="client_secret_post",
            revocation_endpoint_auth_method="client_secret_post",
        ) as client:
            found = await client.fetch_token(
                f"{box.url}/oauth2/token", grant_type="client_credentials"
            )
            answer = await client.introspect_token(
                f"{box.admin_url}/admin/oauth2/introspect", token=found["access_token"]
            )
            assert answer.json()["active"] is True
            # authlib shows its token by itself.
            said = await client.post(
                f"{box.gateway.url}{path}",
                json={"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": say("hello")},
            )
            assert said.json()["result"]["status"]["state"] == "completed"
            ended = await client.revoke_token(
                f"{box.url}/oauth2/revoke", token=found["access_token"]
            )
            assert ended.status_code == 200
            return dict(found)

    token = asyncio.run(fetch())
    assert token["token_type"].lower() == "bearer"
    assert 3500 <= token["expires_in"] <= 3600
    assert set(token["scope"].split()) == set(SCOPE.split())
    refused = rpc(box.http, path, "tasks/get", {"id": "x"}, token["access_token"])
    assert error_of(refused) == (401, -32010)


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({}, 401, -32009),
        ({"Authorization": ""}, 401, -32009),
        ({"Authorization": "Basic eDp5"}, 401, -32009),
        ({"Authorization": "Bearer"}, 401, -32009),
        ({"Authorization": "Bearer a b"}, 401, -32009),
        ({"Authorization": "Bearer fla_unknown"}, 401, -32010),
        ({"Authorization": "Bearer {}"}, 401, -32010),
        ({"Authorization": f"Bearer {'x' * 5000}"}, 401, -32010),
    ],
)
def test_without_an_active_token_nobody_is_let_in(
    box: Box, headers: dict[str, str], status: int, code: int
) -> None:
    seen = len(box.lane.upstream.requests)
    body = {"jsonrpc": "2.0", "id": 5, "method": "message/send", "params": say("hello")}
    for path in (box.agent(), "/agents/no-such-agent"):
        answer = box.http.post(path, json=body, headers=headers)
        assert error_of(answer) == (status, code)
        assert answer.json()["id"] is None
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert ("error=" in answer.headers["www-authenticate"]) is (code != -32009)
    assert len(box.lane.upstream.requests) == seen


def test_other_credentials_do_not_count(box: Box) -> None:
    """A token in the query is none, nor are keys, access tokens and sessions of the gateway."""
    path, token = box.agent(), box.token()
    in_query = rpc(box.http, f"{path}?token={token}", "tasks/get", {"id": "x"})
    assert error_of(in_query) == (401, -32009)
    assert error_of(rpc(box.http, path, "tasks/get", {"id": "x"}, box.gateway.key)) == (401, -32010)
    local = box.gateway.admin.post(path, json={"jsonrpc": "2.0", "id": 1, "method": "tasks/get"})
    assert error_of(local) == (401, -32009)
    # The other way round: an agent's token manages nothing and calls no model.
    for route in ("/api/keys", "/v1/models", "/api/v1/agents/tasks"):
        answer = box.http.get(route, headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 401, route


def test_the_scheme_is_read_in_any_case(box: Box) -> None:
    body = {"jsonrpc": "2.0", "id": 5, "method": "tasks/get", "params": {"id": "x"}}
    headers = {"Authorization": f"bEARER {box.token()}"}
    assert error_of(box.http.post(box.agent(), json=body, headers=headers)) == (200, -32001)


def test_each_method_asks_for_its_scope(box: Box) -> None:
    path = box.agent()
    reads, writes = box.token("agent:read"), box.token("agent:write")
    for method, params, lacking, needed in (
        ("message/send", say("x"), reads, "agent:write"),
        ("tasks/cancel", {"id": "x"}, reads, "agent:write"),
        ("tasks/get", {"id": "x"}, writes, "agent:read"),
    ):
        answer = rpc(box.http, path, method, params, lacking)
        assert error_of(answer) == (403, -32013), method
        challenge = answer.headers["www-authenticate"]
        assert 'error="insufficient_scope"' in challenge
        assert f'scope="{needed}"' in challenge
    assert error_of(rpc(box.http, path, "tasks/get", {"id": "x"}, reads)) == (200, -32001)
    sent = rpc(box.http, path, "message/send", say("x"), writes).json()["result"]
    assert sent["status"]["state"] == "completed"


def test_a_revoked_token_is_refused_at_once(box: Box) -> None:
    path = box.agent()
    for _ in range(5):
        token = box.token()
        assert rpc(box.http, path, "message/send", say("x"), token).status_code == 200
        ended = httpx.post(
            f"{box.url}/oauth2/revoke",
            data={"client_id": DID, "client_secret": SECRET, "token": token},
            trust_env=False,
            verify=NO_AUTHORITIES,
        )
        assert ended.status_code == 200
        assert error_of(rpc(box.http, path, "message/send", say("x"), token)) == (401, -32010)


# ------------------------------------------------------------------------------- what they do


def test_a_message_is_answered_by_the_agents_model(box: Box) -> None:
    path = box.agent(prompt="You are a canary agent.", temperature=0.5)
    answer = rpc(box.http, path, "message/send", say("hello there"), box.token()).json()["result"]
    assert answer["kind"] == "task"
    assert answer["status"]["state"] == "completed"
    text = answer["artifacts"][0]["parts"][0]["text"]
    assert text == completion()["choices"][0]["message"]["content"]
    assert [message["role"] for message in answer["history"]] == ["user", "agent"]
    seen = box.lane.upstream.last.json()
    assert seen["messages"] == [
        {"role": "system", "content": "You are a canary agent."},
        {"role": "user", "content": "hello there"},
    ]
    assert seen["temperature"] == 0.5
    # The call is the key's own: its log has it.
    record = next(iter(box.gateway.records(model=box.lane.model)))
    assert record["keyId"] == key_id(box.gateway)


def test_a_conversation_goes_on_in_its_context_and_in_no_other_callers(box: Box) -> None:
    path, token = box.agent(), box.token()
    register(box.admin_url, "other", SECRET)
    first = rpc(box.http, path, "message/send", say("one"), token).json()["result"]
    context = first["contextId"]
    rpc(box.http, path, "message/send", say("two", contextId=context), token)
    assert [m["content"] for m in box.lane.upstream.last.json()["messages"]][1::2] == ["one", "two"]
    other = box.token(client_id="other")
    rpc(box.http, path, "message/send", say("three", contextId=context), other)
    assert [m["content"] for m in box.lane.upstream.last.json()["messages"]][1:] == ["three"]
    # A task of another client does not exist.
    for method in ("tasks/get", "tasks/cancel"):
        answer = rpc(box.http, path, method, {"id": first["id"]}, other)
        assert error_of(answer) == (200, -32001)
    elsewhere = rpc(box.http, box.agent(), "tasks/get", {"id": first["id"]}, token)
    assert error_of(elsewhere) == (200, -32001)


def test_an_agent_answers_the_clients_that_are_allowed(box: Box) -> None:
    register(box.admin_url, "stranger", SECRET)
    agent = make_agent(box.gateway, box.lane.model, allowedClients=[DID])
    path, skill = agent["path"], f"/api/agent-skills/{agent['id']}"
    assert rpc(box.http, path, "message/send", say("x"), box.token()).json()["result"]
    stranger = box.token(client_id="stranger")
    for method in ("message/send", "message/stream", "tasks/list", "SendMessage"):
        assert error_of(rpc(box.http, path, method, say("x"), stranger)) == (403, -32014)
    changed = box.gateway.admin.put(skill, json={"allowedClients": [DID, "stranger"]})
    assert changed.json()["allowedClients"] == [DID, "stranger"]
    assert rpc(box.http, path, "message/send", say("x"), stranger).json()["result"]
    assert box.gateway.admin.put(skill, json={"allowedClients": []}).status_code == 200
    assert rpc(box.http, path, "message/send", say("x"), stranger).json()["result"]


def test_the_same_message_again_is_the_same_task(box: Box) -> None:
    path, token, params = box.agent(), box.token(), say("once")
    seen = len(box.lane.upstream.requests)
    found = {
        rpc(box.http, path, "message/send", params, token).json()["result"]["id"] for _ in range(3)
    }
    assert len(found) == 1
    assert len(box.lane.upstream.requests) == seen + 1


def test_without_blocking_the_task_is_asked_for_and_can_be_cancelled(box: Box) -> None:
    gate = Gate()
    box.lane.upstream.script([gate, *reply(completion())], model="m")
    try:
        path, token = box.agent(), box.token()
        params = say("slow", configuration={"blocking": False})
        task = rpc(box.http, path, "message/send", params, token).json()["result"]
        assert task["status"]["state"] in ("submitted", "working")

        def state() -> str:
            found = rpc(box.http, path, "tasks/get", {"id": task["id"]}, token).json()
            return str(found["result"]["status"]["state"])

        assert gate.reached.wait(10)
        eventually(lambda: state() == "working", "the task is worked on")
        ended = rpc(box.http, path, "tasks/cancel", {"id": task["id"]}, token).json()["result"]
        assert ended["status"]["state"] == "canceled"
        seen = box.lane.upstream.last
        eventually(lambda: seen.gone_at is not None, "the call to the model is cancelled too")
        assert state() == "canceled"
        again = rpc(box.http, path, "tasks/cancel", {"id": task["id"]}, token)
        assert error_of(again) == (200, -32002)
    finally:
        gate.open()
        box.lane.upstream.script(reply(completion()), model="m")


def test_a_model_that_fails_fails_the_task_with_its_reason(box: Box) -> None:
    path, token = box.agent(model="nowhere/m"), box.token()
    task = rpc(box.http, path, "message/send", say("x"), token).json()["result"]
    assert task["status"]["state"] == "failed"
    assert "`nowhere`" in task["status"]["message"]["parts"][0]["text"]
    assert "artifacts" not in task
    keyless = make_agent(box.gateway, box.lane.model, apiKeyId=None)["path"]
    task = rpc(box.http, keyless, "message/send", say("x"), token).json()["result"]
    assert task["status"]["state"] == "failed"
    assert "apiKeyId" in task["status"]["message"]["parts"][0]["text"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 200, -32700),
        (b"\xff", 200, -32700),
        (b'{"id": 1, "id": 2}', 200, -32700),
        (b"[" * 5000, 200, -32700),
        (b"[]", 200, -32600),
        (b"7", 200, -32600),
        (b'{"jsonrpc": "2.0", "method": "tasks/get"}', 200, -32600),
        (b'{"jsonrpc": "1.0", "id": 1, "method": "tasks/get"}', 200, -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 7}', 200, -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": []}', 200, -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tasks/get"}', 200, -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "nothing"}', 200, -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "message/stream"}', 200, -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tasks/pushNotificationConfig/set"}', 200, -32003),
        (b'{"a":' * 100 + b"1" + b"}" * 100, 200, -32600),
    ],
)
def test_what_cannot_be_read_is_told_in_json_rpc(
    box: Box, body: bytes, status: int, code: int
) -> None:
    headers = {"Authorization": f"Bearer {box.token()}", "Content-Type": "application/json"}
    answer = box.http.post(box.agent(), content=body, headers=headers)
    assert error_of(answer) == (status, code)
    as_text = {**headers, "Content-Type": "text/plain"}
    assert error_of(box.http.post(box.agent(), content=body, headers=as_text)) == (415, -32600)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"role": "agent"}, -32602),
        ({"messageId": None}, -32602),
        ({"messageId": "x" * 129}, -32602),
        ({"parts": []}, -32602),
        ({"parts": ["x"]}, -32602),
        ({"parts": [{"kind": "text"}]}, -32602),
        ({"parts": [{"kind": "data", "data": "x"}]}, -32602),
        ({"parts": [{"kind": "file", "file": {"uri": "http://127.0.0.1/"}}]}, -32005),
        ({"parts": [{"kind": "text", "text": "x" * 200_001}]}, -32602),
        ({"taskId": "nothing"}, -32001),
        ({"contextId": 7}, -32602),
        ({"configuration": {"blocking": "yes"}}, -32602),
        ({"configuration": {"historyLength": -1}}, -32602),
        ({"configuration": {"pushNotificationConfig": {"url": "http://x"}}}, -32003),
    ],
)
def test_a_message_that_breaks_a_rule(box: Box, change: dict[str, Any], code: int) -> None:
    answer = rpc(box.http, box.agent(), "message/send", say("x", **change), box.token())
    assert error_of(answer) == (200, code)


def test_a_task_that_ended_takes_no_more_messages(box: Box) -> None:
    path, token = box.agent(), box.token()
    task = rpc(box.http, path, "message/send", say("x"), token).json()["result"]
    more = rpc(box.http, path, "message/send", say("y", taskId=task["id"]), token)
    assert error_of(more) == (200, -32004)
    short = rpc(box.http, path, "tasks/get", {"id": task["id"], "historyLength": 1}, token)
    assert [m["role"] for m in short.json()["result"]["history"]] == ["agent"]


def test_the_card_is_public_and_says_where_tokens_are_had(box: Box) -> None:
    agent = make_agent(box.gateway, box.lane.model, prompt="canary of a prompt")
    for headers in ({}, {"Authorization": "Bearer whatever"}):
        answer = box.http.get(f"{agent['path']}/.well-known/agent-card.json", headers=headers)
        assert answer.status_code == 200
    card = answer.json()
    assert card["url"] == f"{box.gateway.url}{agent['path']}"
    assert card["preferredTransport"] == "JSONRPC"
    assert card["capabilities"]["streaming"] is True
    flow = card["securitySchemes"]["oauth2"]["flows"]["clientCredentials"]
    assert flow["tokenUrl"] == f"{box.url}/oauth2/token"
    assert set(flow["scopes"]) == {"agent:read", "agent:write"}
    assert "canary of a prompt" not in answer.text
    assert box.http.get("/agents/nobody/.well-known/agent-card.json").status_code == 404


# ------------------------------------------------------------------------------- what outlives


@pytest.mark.slow
def test_what_was_acknowledged_outlives_kill_9(gateways: Callable[..., Gateway]) -> None:
    """Tokens, revocations and tasks; a task that was under way is done by the next control."""
    settings, url, admin_url = issuer_settings()
    gate = Gate()
    with Upstream() as upstream:
        gateway = gateways(**settings)
        eventually(lambda: is_up(admin_url), "the issuer answers", within_s=15)
        box = Box(gateway, gateway.add_lane(upstream), url, admin_url)
        register(admin_url, DID, SECRET)
        kept, ended = box.token(), box.token()
        httpx.post(
            f"{admin_url}/admin/oauth2/revoke",
            data={"token": ended},
            trust_env=False,
            verify=NO_AUTHORITIES,
        )
        path = box.agent()
        done = rpc(box.http, path, "message/send", say("x"), kept).json()["result"]
        upstream.script([gate, *reply(completion())], reply(completion()), model="m")
        params = say("y", configuration={"blocking": False})
        task = rpc(box.http, path, "message/send", params, kept).json()["result"]
        assert gate.reached.wait(10)
        gateway.control.kill()
        eventually(gateway.manages, "control is back", within_s=20, every_s=0.1)
        eventually(lambda: is_up(admin_url), "the issuer is back", within_s=20, every_s=0.1)

        def state(task_id: str) -> str:
            found = rpc(box.http, path, "tasks/get", {"id": task_id}, kept).json()
            return str(found["result"]["status"]["state"])

        assert state(done["id"]) == "completed"
        eventually(lambda: state(task["id"]) == "completed", "the task is done", within_s=20)
        assert error_of(rpc(box.http, path, "tasks/get", {"id": "x"}, ended)) == (401, -32010)
        gate.open()


# ------------------------------------------------------------------- an issuer somewhere else


def test_our_issuer_in_a_process_of_its_own(tmp_path: Path) -> None:
    """Every way of spelling it: `issuer` and `hydra` are one provider. No answer of ours is kept."""
    with (
        Upstream() as upstream,
        start_issuer(tmp_path, ISSUER__ADMIN_TOKEN="the operator's own") as issuer,
        start_gateway(
            tmp_path,
            AUTH__ENABLED="true",
            AUTH__PROVIDER="hydra",
            ISSUER__ADMIN_URL=issuer.admin_url,
            ISSUER__PUBLIC_URL=issuer.url,
            ISSUER__ADMIN_TOKEN="the operator's own",
            AUTH__TIMEOUT_MS="1000",
        ) as gateway,
    ):
        lane = gateway.add_lane(upstream)
        bearer = {"Authorization": "Bearer the operator's own"}
        made = httpx.post(
            f"{issuer.admin_url}/admin/clients",
            headers=bearer,
            trust_env=False,
            json={"client_id": DID, "client_secret": SECRET, "scope": SCOPE},
            verify=NO_AUTHORITIES,
        )
        assert made.status_code == 201
        path, http = str(make_agent(gateway, lane.model)["path"]), gateway.client()
        token = token_of(issuer.url, DID, SECRET)
        for _ in range(3):
            assert rpc(http, path, "message/send", say("x"), token).status_code == 200
        httpx.post(
            f"{issuer.url}/oauth2/revoke",
            trust_env=False,
            data={"client_id": DID, "client_secret": SECRET, "token": token},
            verify=NO_AUTHORITIES,
        )
        assert error_of(rpc(http, path, "message/send", say("x"), token)) == (401, -32010)
        second = token_of(issuer.url, DID, SECRET)
        issuer.kill()
        begun = time.monotonic()
        closed = rpc(http, path, "message/send", say("x"), second)
        assert error_of(closed) == (503, -32603)
        assert time.monotonic() - begun < 10
        issuer.start()
        assert rpc(http, path, "message/send", say("x"), second).status_code == 200


def test_somebody_elses_issuer(tmp_path: Path) -> None:
    """Its good word opens, whatever else it says; slow, odd or dead, it opens to nobody, and soon."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.external_issuer", str(port)], cwd=ROOT
    )
    try:
        with (
            Upstream() as upstream,
            start_gateway(
                tmp_path,
                AUTH__ENABLED="true",
                AUTH__PROVIDER="hydra",
                AUTH__TIMEOUT_MS="1000",
                ISSUER__ADMIN_URL=url,
                ISSUER__PUBLIC_URL=url,
            ) as gateway,
        ):
            lane, http = gateway.add_lane(upstream), gateway.client()
            path = str(make_agent(gateway, lane.model)["path"])
            good = {
                "active": True,
                "sub": "caller",
                "client_id": "caller",
                "token_type": "Bearer",
                "scope": "agent:write",
                "exp": int(time.time()) + 600,
                "ext": {"more": 1},
            }

            def ask(token: str) -> httpx.Response:
                return rpc(http, path, "message/send", say("x"), token)

            def is_let_in() -> bool:
                return ask(token_that(good)).status_code == 200

            eventually(is_let_in, "a good token is let in", within_s=15, every_s=0.1)
            for document, code in (
                ({"active": False}, (401, -32010)),
                ({**good, "exp": 1}, (401, -32011)),
                ({**good, "scope": "agent:read"}, (403, -32013)),
                ({**good, "active": "true"}, (503, -32603)),
            ):
                assert error_of(ask(token_that(document))) == code
            begun = time.monotonic()
            assert error_of(ask(token_that(good, after_s=15))) == (503, -32603)
            assert time.monotonic() - begun < 12
            seen = len(upstream.requests)
            process.kill()
            process.wait(10)
            assert error_of(ask(token_that({**good, "n": "new"}))) == (503, -32603)
            assert len(upstream.requests) == seen
    finally:
        process.kill()
        process.wait(10)


@pytest.mark.one_node(reason="behind a proxy an agent that protects itself by nothing is closed")
def test_without_auth_only_this_machine_is_answered(
    gateway: Gateway, lane: Lane, upstream: Upstream
) -> None:
    path = str(make_agent(gateway, lane.model)["path"])
    http = gateway.client()
    assert rpc(http, path, "message/send", say("x")).json()["result"]["kind"] == "task"
    foreign = ({"Origin": "http://evil.example"}, {"Host": "evil.example"}, {"Origin": "null"})
    for headers in foreign:
        answer = rpc(http, path, "message/send", say("x"), **headers)
        assert error_of(answer) == (403, -32009), headers
    assert json.loads(upstream.requests[0].body)["messages"][0]["role"] == "system"
