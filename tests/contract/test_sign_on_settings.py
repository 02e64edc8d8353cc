"""`oidc*` and `corsOrigins` in `/api/settings`: who may change them, what is kept, what is shown."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import SecretStr

from fairlead.settings import ControlConfig
from tests.support.management import LINK_TOKEN, PASSWORD, Management, run_management

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

PATH = "/api/settings"
OWN = {"currentPassword": PASSWORD}
SECRET = "a secret: with % and spaces"
PROVIDER = {
    "oidcIssuer": "https://id.example.org",
    "oidcClientId": "fairlead",
    "oidcClientSecret": SECRET,
}


async def patch(control, expect: int = 200, **body: Any) -> Any:
    answer = await control.client.patch(PATH, json=body)
    assert answer.status_code == expect, answer.text
    assert SECRET not in answer.text
    return answer.json()


async def refused(control, param: str, expect: int = 400, **body: Any) -> str:
    error = (await patch(control, expect, **body, **OWN))["error"]
    assert error["param"] == param, error
    return error["message"]


SECURITY = {
    "corsOrigins": ["https://app.example"],
    "oidcIssuer": "https://id.example.org",
    "oidcClientId": "fairlead",
    "oidcClientSecret": "x",
    "oidcLocalAuthDisabled": True,
}


@pytest.mark.parametrize("name", sorted(SECURITY))
async def test_each_is_a_security_setting(control, name: str) -> None:
    body = {name: SECURITY[name]}
    for kind, scopes in (("key", ["manage"]), ("token", ["admin"])):
        for sent in (body, body | OWN):
            headers = control.as_principal(kind, "one", scopes)
            answer = await control.client.patch(PATH, json=sent, headers=headers)
            assert answer.status_code == 403, answer.text
    answer = await control.client.patch(PATH, json=body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "currentPassword")
    wrong = body | {"currentPassword": "a guess"}
    assert (await control.client.patch(PATH, json=wrong)).status_code == 401
    assert (await control.client.get(PATH)).json()["settingsRevision"] == 0


async def test_the_secret_is_kept_sealed_and_shown_as_stars(control) -> None:
    shown = await patch(control, **PROVIDER, **OWN)
    assert shown["oidcClientSecret"] == "***"
    assert (await control.client.get(PATH)).json() == shown
    exported = (await control.client.get(f"{PATH}/export-json")).text
    assert '"oidcClientSecret":"***"' in exported
    state = control.app.state.services.state

    def rows(con) -> str:
        return str(con.execute("SELECT name, value FROM operator_settings").fetchall())

    assert SECRET not in await state.read(rows)
    assert SECRET not in str(control.snapshot())
    status = (await control.client.get("/api/auth/status")).json()
    assert (status["oidcEnabled"], status["localAuthEnabled"]) == (True, True)


async def test_stars_and_silence_keep_the_secret(control) -> None:
    from fairlead.store.sign_on import read_sign_on

    services = control.app.state.services

    async def kept() -> SecretStr | None:
        sealer = services.state.sealer
        read = services.state.read
        return (await read(lambda con: read_sign_on(con, services.config, sealer))).client_secret

    await refused(control, "oidcClientSecret", **PROVIDER | {"oidcClientSecret": "***"})
    await patch(control, **PROVIDER, **OWN)
    await patch(control, oidcClientSecret="***", oidcClientId="other", **OWN)
    assert await kept() == SecretStr(SECRET)
    document = (await control.client.get(f"{PATH}/export-json")).json()
    answer = await control.client.post(f"{PATH}/import-json", json=document)
    assert answer.status_code == 200, answer.text
    await control.client.put(PATH, json={"usageRetentionDays": 7})
    assert await kept() == SecretStr(SECRET)
    # A secret is for the issuer that it was given for.
    await refused(control, "oidcClientSecret", oidcIssuer="https://other.example.org")
    await patch(control, oidcIssuer="https://other.example.org", oidcClientSecret=None, **OWN)
    assert await kept() is None
    nothing = dict.fromkeys(PROVIDER)
    assert (await patch(control, **nothing, **OWN))["oidcIssuer"] is None
    assert not (await control.client.get("/api/auth/status")).json()["oidcEnabled"]


async def test_half_a_provider_and_no_way_in_are_refused(control) -> None:
    await refused(control, "oidcClientId", oidcIssuer="https://id.example.org")
    await refused(control, "oidcIssuer", oidcClientId="fairlead")
    await refused(control, "oidcClientSecret", oidcClientSecret="x")
    await refused(control, "oidcLocalAuthDisabled", oidcLocalAuthDisabled=True)
    for wrong in (
        "http://id.example.org",
        "id.example.org",
        "https://",
        "https://a b",
        "https://id/?x",
    ):
        await refused(control, "oidcIssuer", oidcIssuer=wrong, oidcClientId="fairlead")
    await patch(control, **PROVIDER, oidcLocalAuthDisabled=True, **OWN)
    answer = await control.client.post("/api/auth/login", json={"password": PASSWORD})
    assert answer.status_code == 404
    page = await control.client.get("/login", headers=control.as_principal("anonymous"))
    assert "/api/auth/oidc/login" in page.text
    assert 'name="password"' not in page.text
    # While it is the only way, it cannot be taken away.
    await refused(control, "oidcLocalAuthDisabled", **dict.fromkeys(PROVIDER))
    await patch(control, oidcLocalAuthDisabled=False, **OWN)
    answer = await control.client.post("/api/auth/login", json={"password": PASSWORD})
    assert answer.status_code == 200


WRITTEN = {
    "https://App.Example/": "https://app.example",
    "https://app.example:443": "https://app.example",
    "http://localhost:5173": "http://localhost:5173",
    "http://[::1]:80": "http://[::1]",
    "app://obsidian.md": "app://obsidian.md",
}
NO_ORIGINS = [
    "*",
    "null",
    "",
    "app.example",
    "https://app.example/path",
    "https://*.app.example",
    "https://a@app.example",
    "https://app.example:0",
    "https://app.example:65536",
    "https://[::g]",
    "https://app.example?x",
    "https://äpp.example",
]


async def test_origins_are_kept_as_browsers_send_them(control) -> None:
    shown = await patch(control, corsOrigins=[*WRITTEN, "HTTPS://APP.EXAMPLE"], **OWN)
    assert shown["corsOrigins"] == list(dict.fromkeys(WRITTEN.values()))
    assert control.snapshot()["settings"]["cors_origins"] == shown["corsOrigins"]
    for wrong in NO_ORIGINS:
        answer = await control.client.patch(PATH, json={"corsOrigins": [wrong], **OWN})
        assert answer.status_code == 400, wrong
        assert "corsOrigins" in answer.json()["error"]["message"]
    many = [f"https://app{number}.example" for number in range(51)]
    assert (await control.client.patch(PATH, json={"corsOrigins": many, **OWN})).status_code == 400


@pytest.fixture
async def ruled(tmp_path) -> AsyncIterator[Management]:
    """Control whose environment names the provider."""
    environment = {
        "service_oidc_issuer": "https://env.example.org",
        "service_oidc_client_id": "by-environment",
        "service_oidc_local_auth_disabled": True,
    }
    async with run_management(tmp_path, initial_password=PASSWORD, **environment) as management:
        yield management


async def test_what_the_environment_says_wins_and_is_shown(ruled: Management) -> None:
    shown = await ruled.ask("GET", PATH)
    assert (shown["oidcIssuer"], shown["oidcClientId"]) == (
        "https://env.example.org",
        "by-environment",
    )
    # The environment names a public client: no stored secret goes to its issuer.
    assert (shown["oidcClientSecret"], shown["oidcLocalAuthDisabled"]) == (None, True)
    for body in (
        {"oidcIssuer": "https://id.example.org"},
        {"oidcIssuer": None},
        {"oidcClientSecret": "x"},
        {"oidcLocalAuthDisabled": False},
    ):
        message, param = await ruled.refused("PATCH", PATH, body | OWN, expect=409)
        assert param == next(iter(body))
        assert f"SERVICE_OIDC_{'LOCAL' if 'Local' in param else ''}" in message
    same = {name: shown[name] for name in ("oidcIssuer", "oidcClientId", "oidcClientSecret")}
    again = await ruled.ask("PATCH", PATH, same | OWN)
    assert {**again, "settingsRevision": 0} == {**shown, "settingsRevision": 0}


def test_what_environment_and_settings_say_is_never_mixed(tmp_path) -> None:
    from fairlead.store.operator_settings import OperatorSettings
    from fairlead.store.sign_on import in_force

    config = ControlConfig(
        data_dir=tmp_path,
        link_token=LINK_TOKEN,
        control_socket=tmp_path / "s",
        service_oidc_issuer="https://env.example.org",
        service_oidc_client_id="env",
    )
    stored = OperatorSettings.model_validate(
        {"oidcIssuer": "https://id.example.org", "oidcClientId": "id", "oidcClientSecret": "sealed"}
    )
    now = in_force(stored, config)
    assert (now.oidc_issuer, now.oidc_client_id, now.oidc_client_secret) == (
        "https://env.example.org",
        "env",
        None,
    )
    assert "sealed" not in repr(stored)
