"""The second factor: enrolment, the second step, recovery codes, replay, and who waits."""

from __future__ import annotations

import asyncio
import re
from http.cookies import SimpleCookie
from urllib.parse import urlencode

import pyotp
import pytest

from fairlead.identity import account_router, challenges, sign_in
from tests.support.management import PASSWORD

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

FORM = {"content-type": "application/x-www-form-urlencoded"}
CURRENT = {"currentPassword": PASSWORD}


class Clock:
    """The wall clock of codes and pending sign-ins."""

    def __init__(self) -> None:
        self.ms = 1_800_000_000_000

    def __call__(self) -> int:
        return self.ms


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    for module in (account_router, sign_in):
        monkeypatch.setattr(module, "now_ms", clock)
    return clock


class Device:
    """An authenticator app with the owner's secret."""

    def __init__(self, control, clock: Clock) -> None:
        self._control = control
        self._clock = clock
        self.recovery: list[str] = []

    async def enrol(self) -> None:
        enrolled = await self._control.client.post("/api/auth/2fa/enrol", json=CURRENT)
        assert enrolled.status_code == 200, enrolled.text
        self.totp = pyotp.parse_uri(enrolled.json()["otpauthUri"])
        assert enrolled.json()["secret"] == self.totp.secret
        confirmed = await self._control.client.post(
            "/api/auth/2fa/confirm", json={"code": self.code()}
        )
        assert confirmed.status_code == 200, confirmed.text
        self.recovery = confirmed.json()["recoveryCodes"]
        self._clock.ms += 30_000

    def code(self, steps: int = 0) -> str:
        return self.totp.generate_otp(self._clock.ms // 30_000 + steps)

    def wrong(self) -> str:
        good = {self.code(steps) for steps in range(-3, 4)}
        return next(code for code in ("000000", "111111", "222222", "333333") if code not in good)


@pytest.fixture
async def device(control, clock: Clock) -> Device:
    device = Device(control, clock)
    await device.enrol()
    # What enrolling has spent of the minute's attempts is not the matter of these tests.
    control.app.state.sign_in.window._limit = 1000
    return device


async def begin(control, **headers: str) -> str:
    answer = await control.client.post(
        "/api/auth/login", json={"password": PASSWORD}, headers=headers
    )
    assert answer.status_code == 200, answer.text
    assert "set-cookie" not in answer.headers
    body = answer.json()
    assert body["requires2fa"] is True
    assert body["user"]["email"] == "owner@localhost"
    assert set(body) == {"requires2fa", "tempToken", "user"}
    return body["tempToken"]


async def finish(control, token: str, code: str, **headers: str):
    body = {"tempToken": token, "code": code}
    return await control.client.post("/api/auth/login/2fa", json=body, headers=headers)


def said(answer) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["message"]


async def test_a_code_finishes_the_sign_in(control, device) -> None:
    token = await begin(control)
    assert control.snapshot()["sessions"] == []
    answer = await finish(control, token, device.code())
    assert answer.status_code == 200
    assert answer.json()["success"] is True
    assert answer.json()["user"]["email"] == "owner@localhost"
    assert SimpleCookie(answer.headers["set-cookie"])["auth_token"].value
    assert len(control.snapshot()["sessions"]) == 1
    assert said(await finish(control, token, device.code(1))) == (401, "invalid or expired code")


async def test_a_code_counts_once_and_no_earlier_one_after_it(control, device, clock) -> None:
    assert (await finish(control, await begin(control), device.code())).status_code == 200
    for spent in (device.code(), device.code(-1)):
        assert said(await finish(control, await begin(control), spent)) == (401, "invalid code")
    clock.ms += 30_000
    assert (await finish(control, await begin(control), device.code())).status_code == 200


async def test_of_one_code_at_the_same_time_one_counts(control, device) -> None:
    token = await begin(control)
    code = device.code()
    answers = await asyncio.gather(*(finish(control, token, code) for _ in range(4)))
    assert sorted(answer.status_code for answer in answers) == [200, 401, 401, 401]
    assert len(control.snapshot()["sessions"]) == 1


async def test_codes_too_far_away_are_wrong(control, device) -> None:
    for steps in (-2, 2, 10):
        answer = await finish(control, await begin(control), device.code(steps))
        assert said(answer) == (401, "invalid code")
    spaced = device.code(1)
    answer = await finish(control, await begin(control), f"{spaced[:3]} {spaced[3:]}")
    assert answer.status_code == 200


async def test_each_recovery_code_counts_once(control, device) -> None:
    assert len(set(device.recovery)) == 10
    one = device.recovery[0].upper().replace("-", " ")
    assert (await finish(control, await begin(control), one)).status_code == 200
    assert said(await finish(control, await begin(control), one)) == (401, "invalid code")
    state = (await control.client.get("/api/auth/2fa")).json()
    assert state == {"enabled": True, "recoveryCodesLeft": 9}
    renewed = await control.client.post("/api/auth/2fa/recovery-codes", json=CURRENT)
    assert len(renewed.json()["recoveryCodes"]) == 10
    old = await finish(control, await begin(control), device.recovery[1])
    assert said(old) == (401, "invalid code")


async def test_five_wrong_codes_end_the_attempt_and_lock_the_account(control, device) -> None:
    token = await begin(control)
    wrong = device.wrong()
    peers = [{"x-fairlead-peer": f"203.0.113.{n}"} for n in range(5)]
    answers = [await finish(control, token, wrong, **peer) for peer in peers]
    assert [said(answer)[1] for answer in answers] == ["invalid code"] * 4 + [
        "too many attempts; please sign in again"
    ]
    # Not even the right code, from wherever it comes.
    right = await finish(control, token, device.code(), **{"x-fairlead-peer": "203.0.113.9"})
    assert right.status_code == 429
    assert "set-cookie" not in right.headers


async def test_a_pending_sign_in_ends_after_ten_minutes(control, device, clock) -> None:
    token = await begin(control)
    clock.ms += challenges.LIFETIME_S * 1000 - 1
    assert said(await finish(control, token, device.wrong())) == (401, "invalid code")
    clock.ms += 1
    assert said(await finish(control, token, device.code())) == (401, "invalid or expired code")


async def test_a_new_sign_in_replaces_the_pending_one(control, device) -> None:
    first, second = await begin(control), await begin(control)
    assert said(await finish(control, first, device.code())) == (401, "invalid or expired code")
    assert (await finish(control, second, device.code())).status_code == 200


async def test_a_pending_token_opens_nothing_and_is_kept_as_a_hash(control, device) -> None:
    token = await begin(control)
    assert token not in str(control.snapshot())
    for path in control.data_dir.iterdir():
        if path.is_file():
            text = path.read_bytes()
            assert token.encode() not in text
            assert device.totp.secret.encode() not in text
            assert device.recovery[0].encode() not in text


async def test_the_factor_is_not_on_before_it_is_confirmed(control, clock) -> None:
    enrolled = await control.client.post("/api/auth/2fa/enrol", json=CURRENT)
    assert enrolled.headers["cache-control"] == "no-store"
    answer = await control.client.post("/api/auth/2fa/confirm", json={"code": "12345"})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "code")
    assert (await control.client.get("/api/auth/2fa")).json()["enabled"] is False
    answer = await control.client.post("/api/auth/login", json={"password": PASSWORD})
    assert answer.json()["success"] is True


async def test_turning_it_on_and_off_needs_the_password(control, device) -> None:
    for path in ("enrol", "disable", "recovery-codes"):
        missing = await control.client.post(f"/api/auth/2fa/{path}", json={})
        assert (missing.status_code, missing.json()["error"]["param"]) == (400, "currentPassword")
        wrong = await control.client.post(
            f"/api/auth/2fa/{path}", json={"currentPassword": "wrong"}
        )
        assert said(wrong) == (401, "Invalid current password")
    assert (await control.client.post("/api/auth/2fa/enrol", json=CURRENT)).status_code == 409
    assert (await control.client.post("/api/auth/2fa/disable", json=CURRENT)).status_code == 200
    answer = await control.client.post("/api/auth/login", json={"password": PASSWORD})
    assert answer.json()["success"] is True


async def test_the_pages_take_both_steps(control, device) -> None:
    async def post(path: str, **fields: str):
        return await control.client.post(path, content=urlencode(fields), headers=FORM)

    page = await post("/login", password=PASSWORD, return_to="/board?a=1&b=2")
    assert page.status_code == 200
    assert "set-cookie" not in page.headers
    token = re.search(r'name="token" value="([^"]+)"', page.text)[1]
    assert 'value="/board?a=1&amp;b=2"' in page.text
    wrong = await post("/login/2fa", token=token, code=device.wrong(), return_to="/board?a=1&b=2")
    assert wrong.status_code == 401
    assert "Invalid authentication code." in wrong.text
    done = await post("/login/2fa", token=token, code=device.code(), return_to="/board?a=1&b=2")
    assert (done.status_code, done.headers["location"]) == (303, "/board?a=1&b=2")
    assert SimpleCookie(done.headers["set-cookie"])["auth_token"]["httponly"]
    over = await post("/login/2fa", token=token, code=device.code(1), return_to="/")
    assert "Your sign-in attempt expired. Start over to try again." in over.text
    assert 'name="code"' not in over.text
