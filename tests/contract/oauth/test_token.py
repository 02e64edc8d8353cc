"""Codes and tokens: bound, used once, rotated, and never spent by a request that is wrong."""

from __future__ import annotations

import asyncio

import pytest

from fairlead.errors import StorageUnavailable
from fairlead.identity.oauth import ledger, records
from fairlead.store.file import Connection
from tests.support.console_forms import ConsolePage
from tests.support.tool_client import REDIRECT, ToolClient

from .conftest import ORIGIN, PASSWORD

pytestmark = pytest.mark.anyio


ACCESS = "oauth_tokens WHERE generation IS NULL"
REFRESH = "oauth_tokens WHERE generation IS NOT NULL"


async def count(server, table: str) -> int:
    def work(con: Connection) -> int:
        row = con.execute(f"SELECT count(*) FROM {table}").fetchone()
        return 0 if row is None else int(row[0])

    found: int = await server.services.state.read(work)
    return found


def assert_fault(answer, status: int, error: str) -> None:
    assert (answer.status_code, answer.json().get("error")) == (status, error), answer.text
    assert set(answer.json()) == {"error", "error_description"}
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["pragma"] == "no-cache"
    assert answer.headers["content-type"] == "application/json"


async def test_a_code_becomes_a_pair(server, tool, session) -> None:
    answer = await tool.exchange(await tool.code(session))
    assert answer.status_code == 200
    said = answer.json()
    assert set(said) == {"access_token", "token_type", "expires_in", "refresh_token"}
    assert (said["token_type"], said["expires_in"]) == ("Bearer", 3600)
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["pragma"] == "no-cache"
    assert await server.counts(said["access_token"])


async def test_what_is_missing_is_named_and_spends_nothing(server, tool, session) -> None:
    code = await tool.code(session)
    for name in ("grant_type", "code", "client_id", "redirect_uri", "code_verifier"):
        for value in (None, ""):
            answer = await tool.exchange(code, **{name: value})
            assert_fault(answer, 400, "invalid_request")
            assert name in answer.json()["error_description"]
    for name in ("refresh_token", "client_id"):
        assert_fault(await tool.refresh("x", **{name: None}), 400, "invalid_request")
    for grant_type in ("password", "client_credentials", "implicit", "Authorization_Code"):
        server.unlimit()
        answer = await tool.exchange(code, grant_type=grant_type)
        assert_fault(answer, 400, "unsupported_grant_type")
    assert (await tool.exchange(code)).status_code == 200


async def test_a_request_that_is_wrong_in_one_part_spends_nothing(server, tool, session) -> None:
    code = await tool.code(session)
    other = ToolClient(server.http, ORIGIN)
    await other.register()
    wrong: list[tuple[dict[str, str | None], str]] = [
        ({"code": code[:-1]}, "invalid_grant"),
        ({"client_id": other.client_id}, "invalid_grant"),
        ({"client_id": "nobody"}, "invalid_grant"),
        ({"redirect_uri": REDIRECT + "/"}, "invalid_grant"),
        ({"redirect_uri": REDIRECT.replace("53111", "1")}, "invalid_grant"),
        ({"code_verifier": other.verifier}, "invalid_grant"),
        ({"code_verifier": tool.challenge}, "invalid_grant"),
        ({"code_verifier": tool.verifier[:42]}, "invalid_grant"),
        ({"code_verifier": tool.verifier + "x" * 65}, "invalid_grant"),
        ({"code_verifier": "é" * 43}, "invalid_grant"),
        ({"resource": None}, "invalid_target"),
        ({"resource": f"{ORIGIN}/mcp/rpc/"}, "invalid_target"),
        ({"resource": f"{ORIGIN}/mcp"}, "invalid_target"),
        ({"resource": "https://evil.example/mcp/rpc"}, "invalid_target"),
    ]
    for bent, error in wrong:
        assert_fault(await tool.exchange(code, **bent), 400, error)
    twice = f"&resource={ORIGIN}/mcp/rpc"
    assert_fault(await tool.exchange(code, more=twice), 400, "invalid_target")
    issued = await tool.exchange(code)
    assert issued.status_code == 200
    token = issued.json()["refresh_token"]
    server.unlimit()
    wrong = [
        ({"refresh_token": token[:-1]}, "invalid_grant"),
        ({"refresh_token": issued.json()["access_token"]}, "invalid_grant"),
        ({"client_id": other.client_id}, "invalid_grant"),
        ({"resource": None}, "invalid_target"),
        ({"resource": f"{ORIGIN}/mcp/rpc#"}, "invalid_target"),
    ]
    for bent, error in wrong:
        assert_fault(await tool.refresh(token, **bent), 400, error)
    assert_fault(await tool.refresh(token, more=twice), 400, "invalid_target")
    assert (await tool.refresh(token)).status_code == 200


async def test_how_a_token_request_is_sent(server, tool, session) -> None:
    code = await tool.code(session)
    right = {
        "grant_type": "authorization_code",
        "code": code,
        "client_id": tool.client_id,
        "redirect_uri": tool.redirect_uri,
        "code_verifier": tool.verifier,
        "resource": tool.resource,
    }
    assert_fault(await server.http.post("/oauth/token", json=right), 400, "invalid_request")
    answer = await server.http.post("/oauth/token", content=b"", headers={})
    assert_fault(answer, 400, "invalid_request")
    for name in (*right, "refresh_token", "scope"):
        if name != "resource":
            answer = await tool.exchange(code, more=f"&{name}=x&{name}=y")
            assert_fault(answer, 400, "invalid_request")
        form = {"content-type": "application/x-www-form-urlencoded"}
        answer = await server.http.post(f"/oauth/token?{name}=x", data=right, headers=form)
        assert_fault(answer, 400, "invalid_request")
    for more in ("&x=%zz", "&x=%ff", "&" + "&".join(f"p{n}=1" for n in range(70))):
        assert_fault(await tool.exchange(code, more=more), 400, "invalid_request")
    server.unlimit()
    # What is not known is ignored, a scope too, which clients send although none is told of.
    answer = await server.http.post(
        "/oauth/token?x=1",
        data=right | {"scope": "openid email", "client_assertion": "x"},
        headers={"content-type": "application/x-www-form-urlencoded; charset=UTF-8"},
    )
    assert answer.status_code == 200, answer.text


async def test_a_verifier_of_the_standard_fits(server, session) -> None:
    """The vector of RFC 7636, appendix B."""
    tool = ToolClient(server.http, ORIGIN, verifier="dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
    assert tool.challenge == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    await tool.register()
    assert await tool.tokens(session)


async def test_codes_and_tokens_end_in_time(server, tool, session, clock) -> None:
    code = await tool.code(session)
    clock.pass_s(60)
    assert_fault(await tool.exchange(code), 400, "invalid_grant")
    issued = await tool.tokens(session)
    clock.pass_s(3599.999)
    assert await server.counts(issued["access_token"])
    clock.pass_s(0.001)
    assert not await server.counts(issued["access_token"])
    clock.ms += records.REFRESH_LIFETIME_MS - 3_600_000
    assert_fault(await tool.refresh(issued["refresh_token"]), 400, "invalid_grant")
    await server.oauth.ledger.sweep()
    for table in ("oauth_tokens", "oauth_codes", "oauth_grants"):
        assert await count(server, table) == 0


async def test_a_code_that_comes_again_ends_what_came_of_it(server, tool, session) -> None:
    code = await tool.code(session)
    issued = (await tool.exchange(code)).json()
    # Somebody who does not know the verifier ends nothing.
    assert_fault(await tool.exchange(code, code_verifier="x" * 43), 400, "invalid_grant")
    assert await server.counts(issued["access_token"])
    assert_fault(await tool.exchange(code), 400, "invalid_grant")
    assert not await server.counts(issued["access_token"])
    assert_fault(await tool.refresh(issued["refresh_token"]), 400, "invalid_grant")
    assert await count(server, "oauth_grants") == 0


async def test_of_fifty_requests_with_one_code_one_succeeds(server, tool, session) -> None:
    code = await tool.code(session)
    answers = await asyncio.gather(*(tool.exchange(code) for _ in range(50)))
    assert sorted(answer.status_code for answer in answers) == [200] + [400] * 49
    for answer in answers:
        if answer.status_code == 400:
            assert_fault(answer, 400, "invalid_grant")
    assert await count(server, REFRESH) <= 1


async def test_rotation_and_its_grace(server, tool, session, clock) -> None:
    first = await tool.tokens(session)
    second = (await tool.refresh(first["refresh_token"])).json()
    assert second["refresh_token"] != first["refresh_token"]
    clock.pass_s(9.999)
    again = (await tool.refresh(first["refresh_token"])).json()
    assert set(again) == {"access_token", "token_type", "expires_in"}
    for issued in (first, second, again):
        assert await server.counts(issued["access_token"])
    clock.pass_s(0.001)
    assert_fault(await tool.refresh(first["refresh_token"]), 400, "invalid_grant")
    for issued in (first, second, again):
        assert not await server.counts(issued["access_token"])
    assert_fault(await tool.refresh(second["refresh_token"]), 400, "invalid_grant")


async def test_the_grace_is_for_the_last_rotation_only(server, tool, session) -> None:
    first = await tool.tokens(session)
    second = (await tool.refresh(first["refresh_token"])).json()
    third = (await tool.refresh(second["refresh_token"])).json()
    assert_fault(await tool.refresh(first["refresh_token"]), 400, "invalid_grant")
    assert not await server.counts(third["access_token"])


async def test_without_grace_any_second_use_ends_it(server, tool, session) -> None:
    server.oauth.ledger._grace_ms = 0
    first = await tool.tokens(session)
    second = (await tool.refresh(first["refresh_token"])).json()
    assert_fault(await tool.refresh(first["refresh_token"]), 400, "invalid_grant")
    assert_fault(await tool.refresh(second["refresh_token"]), 400, "invalid_grant")
    assert not await server.counts(second["access_token"])


async def test_of_fifty_refreshes_one_rotates(server, tool, session) -> None:
    first = await tool.tokens(session)
    answers = await asyncio.gather(*(tool.refresh(first["refresh_token"]) for _ in range(50)))
    said = [answer.json() for answer in answers]
    assert {answer.status_code for answer in answers} == {200}
    [winner] = [one for one in said if "refresh_token" in one]
    assert len({one["access_token"] for one in said}) == 50
    for one in said:
        assert await server.counts(one["access_token"])
    server.unlimit()
    assert (await tool.refresh(winner["refresh_token"])).status_code == 200


async def test_of_fifty_refreshes_without_grace_one_is_answered(server, tool, session) -> None:
    server.oauth.ledger._grace_ms = 0
    first = await tool.tokens(session)
    answers = await asyncio.gather(*(tool.refresh(first["refresh_token"]) for _ in range(50)))
    assert sorted(answer.status_code for answer in answers) == [200] + [400] * 49


async def test_only_so_many_tokens_of_one_approval_live(server, tool, session, monkeypatch) -> None:
    if server.services.state.database.path is None:
        pytest.skip(
            "the clock stands still, and tokens of one millisecond have no order in a shared database"
        )
    monkeypatch.setattr(ledger, "ACCESS_PER_GRANT_MAX", 2)
    monkeypatch.setattr(ledger, "REFRESH_PER_GRANT_MAX", 3)
    issued = [await tool.tokens(session)]
    for _ in range(4):
        issued.append((await tool.refresh(issued[-1]["refresh_token"])).json())
    alive = [await server.counts(one["access_token"]) for one in issued]
    assert alive == [False, False, False, True, True]
    assert await count(server, ACCESS) == 2
    assert await count(server, REFRESH) == 3


async def test_the_sixty_first_in_a_minute_is_too_many(server, tool, session) -> None:
    for number in range(60):
        answer = await (tool.exchange("x") if number % 2 else tool.refresh("x"))
        assert_fault(answer, 400, "invalid_grant")
    for answer in (await tool.exchange("x"), await tool.refresh("x")):
        assert_fault(answer, 429, "invalid_request")
        assert 1 <= int(answer.headers["retry-after"]) <= 60
    # Signing in has a window of its own, and so has registering.
    assert await server.sign_in()
    assert (await tool.register()).status_code == 201
    for _ in range(12):
        await server.http.post("/api/auth/login", json={"password": "wrong"})
    server.unlimit()
    assert_fault(await tool.refresh("x"), 400, "invalid_grant")


async def test_whom_the_windows_count(server, tool) -> None:
    for number in range(61):
        tool.headers = {"x-forwarded-for": f"198.51.100.{number}"}
        answer = await tool.refresh("x")
    assert answer.status_code == 429
    config = server.services.config
    server.services.config = config.model_copy(update={"service_trust_proxy": True})
    tool.headers = {"x-forwarded-for": "198.51.100.1, 203.0.113.9"}
    assert (await tool.refresh("x")).status_code != 429


async def test_revoking(server, tool, session) -> None:
    issued = await tool.tokens(session)
    other = await tool.tokens(session)

    async def revoke(token: str | None, more: str = "", query: str = "", **fields: str):
        body = {"token": token, "client_id": tool.client_id, **fields}
        return await tool.post(f"/oauth/revoke{query}", body, more)

    access, refresh = issued["access_token"], issued["refresh_token"]
    for answer in (
        await revoke(None),
        await revoke(""),
        await revoke(access, more="&token=x"),
        await revoke(access, more="&client_id=x"),
        await revoke(access, more="&x=%zz"),
        await revoke(access, query=f"?token={access}"),
        await server.http.post("/oauth/revoke", json={"token": access}),
    ):
        assert_fault(answer, 400, "invalid_request")
    answer = await revoke(access, client_id="another client")
    assert answer.status_code == 200
    assert await server.counts(access)
    assert (await revoke("unknown")).status_code == 200
    answer = await revoke(access, token_type_hint="refresh_token")
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    assert not await server.counts(access)
    renewed = (await tool.refresh(refresh)).json()
    # A refresh token takes all of its approval along, and nothing of another.
    assert (await revoke(renewed["refresh_token"])).status_code == 200
    assert not await server.counts(renewed["access_token"])
    assert_fault(await tool.refresh(renewed["refresh_token"]), 400, "invalid_grant")
    assert await server.counts(other["access_token"])


def every_oauth_row(con: Connection) -> bytes:
    tables = ("clients", "grants", "codes", "tokens")
    rows = [con.execute(f"SELECT * FROM oauth_{table}").fetchall() for table in tables]
    assert all(rows)
    return repr(rows).encode()


async def test_what_is_stored_opens_nothing(server, tool, session) -> None:
    code = await tool.code(session)
    issued = await tool.tokens(session)
    database = server.services.state.database
    if database.path is None:
        stored = await database.read(every_oauth_row)
    else:
        # What is not in the file yet is in the log beside it.
        stored = b"".join(
            each.read_bytes() for each in database.path.parent.glob(f"{database.path.name}*")
        )
        assert tool.client_id.encode() in stored
    for secret in (code, issued["access_token"], issued["refresh_token"], tool.verifier):
        assert secret.encode() not in stored


async def test_somebody_who_is_switched_off_is_refused_at_once(server, tool, session) -> None:
    admin = {"x-fairlead-principal": '{"kind": "local", "id": null, "scopes": []}'}
    now = {"currentPassword": PASSWORD}
    body = {
        "email": "ada@example.org",
        "name": "Ada",
        "role": "member",
        "password": "a" * 20,
        **now,
    }
    made = await server.http.post("/api/users", json=body, headers=admin)
    assert made.status_code == 201, made.text
    user = made.json()
    cookie = await server.sign_in("ada@example.org", "a" * 20)
    issued = await tool.tokens(cookie)
    mine = await tool.tokens(session)
    path = f"/api/users/{user['id']}"
    for is_active in (False, True):
        changed = await server.http.patch(path, json={"isActive": is_active, **now}, headers=admin)
        assert changed.status_code == 200, changed.text
        assert await server.counts(issued["access_token"]) is is_active
        answer = await tool.refresh(issued["refresh_token"])
        assert answer.status_code == (200 if is_active else 400)
    assert (await server.http.delete(path, headers=admin)).status_code == 200
    assert not await server.counts(answer.json()["access_token"])
    assert_fault(await tool.refresh(answer.json()["refresh_token"]), 400, "invalid_grant")
    assert await server.counts(mine["access_token"])
    await server.oauth.ledger.sweep()
    assert await count(server, "oauth_grants") == 1


async def test_people_see_and_take_back_their_approvals(server, tool, session) -> None:
    issued = await tool.tokens(session)
    owner = await server.oauth.gate.state.read(
        lambda con: con.execute("SELECT id FROM users WHERE role = 'owner'").fetchone()[0]
    )

    def acting(user_id: str) -> dict[str, str]:
        return {"x-fairlead-principal": f'{{"kind": "session", "id": "{user_id}", "scopes": []}}'}

    found = (await server.http.get("/api/auth/grants", headers=acting(owner))).json()
    [grant] = found["grants"]
    assert (grant["clientName"], grant["redirectUri"]) == ("Test tool", REDIRECT)
    path = f"/api/auth/grants/{grant['id']}"
    assert (await server.http.delete(path, headers=acting("nobody"))).status_code == 401
    assert await server.counts(issued["access_token"])
    assert (await server.http.delete(path, headers=acting(owner))).status_code == 200
    assert not await server.counts(issued["access_token"])
    assert (await server.http.delete(path, headers=acting(owner))).status_code == 404


async def test_an_approval_is_taken_back_on_the_page_of_the_account(server, tool, session) -> None:
    issued = await tool.tokens(session)
    owner = await server.oauth.gate.state.read(
        lambda con: con.execute("SELECT id FROM users WHERE role = 'owner'").fetchone()[0]
    )
    who = {"x-fairlead-principal": f'{{"kind": "session", "id": "{owner}", "scopes": ["manage"]}}'}
    place = "/dashboard/account"
    page = ConsolePage((await server.http.get(place, headers=who)).text)
    (taken,) = [each for each in page.forms if each.act == "withdraw"]
    asked = await server.http.post(place, data=taken.fields(), headers=who)
    assert "Test tool" in asked.text
    assert await server.counts(issued["access_token"]), "it asks first"
    (sure,) = [each for each in ConsolePage(asked.text).forms if "confirmed" in each.hidden]
    done = await server.http.post(sure.action, data=sure.fields(), headers=who)
    assert done.status_code == 303, done.text
    assert not await server.counts(issued["access_token"])
    assert "No tool client" in (await server.http.get(place, headers=who)).text


async def test_a_write_that_fails_leaves_memory_as_the_file_is(
    server, tool, session, monkeypatch
) -> None:
    issued = await tool.tokens(session)
    database = server.services.state.database
    write = database.write

    async def fail(*_args, **_kwargs):
        raise StorageUnavailable("The database does not answer.", retry_after_s=5)

    monkeypatch.setattr(database, "write", fail)
    answers = await asyncio.gather(*(tool.refresh(issued["refresh_token"]) for _ in range(5)))
    for answer in answers:
        assert_fault(answer, 503, "temporarily_unavailable")
    monkeypatch.setattr(database, "write", write)
    # Nothing was told to anybody, so nothing has rotated: the client is still signed in.
    renewed = await tool.refresh(issued["refresh_token"])
    assert "refresh_token" in renewed.json()


async def test_everything_is_known_after_a_start(server, tool, session) -> None:
    issued = await tool.tokens(session)
    spent = await tool.code(session)
    pair = (await tool.exchange(spent)).json()
    waiting = await tool.code(session)
    renewed = (await tool.refresh(issued["refresh_token"])).json()
    server.oauth.ledger._is_loaded = False
    assert await server.counts(issued["access_token"])
    assert await server.counts(renewed["access_token"])
    again = await tool.refresh(issued["refresh_token"])
    assert set(again.json()) == {"access_token", "token_type", "expires_in"}
    assert (await tool.exchange(waiting)).status_code == 200
    assert_fault(await tool.exchange(spent), 400, "invalid_grant")
    assert not await server.counts(pair["access_token"])
