"""Who becomes the owner of a gateway that has none: who sits at its machine, or has read what it printed."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.support.processes import Gateway, expect

PASSWORD = "words of the first owner"
BY_PROXY = {"X-Forwarded-For": "192.0.2.7", "X-Forwarded-Proto": "https"}
TOKEN = re.compile(r"requires the set-up token (\S+)")


def test_through_a_proxy_it_takes_the_printed_token(gateways: Callable[..., Gateway]) -> None:
    gateway = gateways()
    client = gateway.client()
    said = TOKEN.search(gateway.log)
    assert said is not None
    assert len(said[1]) >= 20
    page = client.get("/setup", headers=BY_PROXY)
    assert 'name="token"' in page.text
    assert 'name="token"' not in client.get("/setup").text
    assert said[1] not in page.text

    body = {"password": PASSWORD}
    refused = expect(client.post("/setup", json=body, headers=BY_PROXY), 403)["error"]
    assert refused["param"] == "token"
    expect(client.post("/setup", json=body | {"token": "x"}, headers=BY_PROXY), 403)
    expect(client.post("/setup", json=body | {"token": said[1]}, headers=BY_PROXY), 201)
    other = gateway.client()
    expect(other.post("/setup", json=body | {"token": said[1]}, headers=BY_PROXY), 409)


def test_a_proxy_that_adds_nothing_is_known_by_the_settings(
    gateways: Callable[..., Gateway],
) -> None:
    gateway = gateways(SERVICE_PUBLIC_BASE_URL="https://gw.example")
    expect(gateway.client().post("/setup", json={"password": PASSWORD}), 403)


def test_an_owner_without_a_password_is_no_reason_to_open_it(
    gateways: Callable[..., Gateway],
) -> None:
    """The initial password goes before one was stored: what it guarded stays shut."""
    gateway = gateways(INITIAL_PASSWORD=PASSWORD)
    assert TOKEN.search(gateway.log) is None
    gateway.kill_all()
    del gateway._environment["INITIAL_PASSWORD"]
    gateway.start()
    assert TOKEN.search(gateway.log) is None
    assert "The owner has no password: run `fairlead owner reset-password`" in gateway.log
    expect(gateway.client().post("/setup", json={"password": PASSWORD}), 409)
    answer = gateway.client().get("/setup")
    assert (answer.status_code, answer.headers["location"]) == (302, "/login")
