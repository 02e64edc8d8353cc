"""Credentials that the gateway obtains from its machine or a cloud: used for calls, renewed before they end, and never
shown. The services run on this machine, at the addresses that the variables of the clouds' SDKs name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_credentials import SECRET, signed_again
from tests.support import clouds
from tests.support.polling import eventually
from tests.support.processes import Gateway, expect, start_gateway
from tests.support.upstream import Script, Seen, Upstream, completion, reply

GPT = "bedrock/openai.gpt-oss-120b-1:0"
GEMINI = "vertex/meta/llama-4-scout-17b-16e-instruct-maas"


class Services(Upstream):
    """EC2's and Google's metadata services and Entra's token service on one port."""

    lifetime_s = 3600.0
    failing = False
    given = 0

    def choose(self, seen: Seen) -> Script:
        if seen.target == "/latest/api/token":
            return reply(b"instance", content_type="text/plain")
        if seen.target == "/latest/meta-data/iam/security-credentials/":
            return reply(b"my-role", content_type="text/plain")
        if self.failing:
            return reply({}, 500)
        self.given += 1
        if seen.target.startswith("/latest/"):
            ends = datetime.now(UTC) + timedelta(seconds=self.lifetime_s)
            return reply(
                {
                    "Code": "Success",
                    "AccessKeyId": "AKIDEXAMPLE",
                    "SecretAccessKey": SECRET,
                    "Token": f"session-canary-{self.given}",
                    "Expiration": ends.strftime("%Y-%m-%dT%H:%M:%SZ"),
                }
            )
        granted = {"access_token": f"access-canary-{self.given}", "expires_in": self.lifetime_s}
        return reply(granted, 200, [("Metadata-Flavor", "Google")])


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Gateway, Services, Path]]:
    folder = tmp_path_factory.mktemp("machine")
    with Services() as services:
        environment = {
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": f"http://127.0.0.1:{services.port}",
            "GCE_METADATA_HOST": f"127.0.0.1:{services.port}",
            "AZURE_AUTHORITY_HOST": f"http://127.0.0.1:{services.port}",
            "AWS_SHARED_CREDENTIALS_FILE": str(folder / "credentials"),
            "AWS_CONFIG_FILE": str(folder / "config"),
        }
        with start_gateway(folder, **environment) as gateway:
            gateway.canaries += [SECRET, "session-canary", "access-canary", "app-canary"]
            yield gateway, services, folder


@pytest.fixture
def gateway(running: tuple[Gateway, Services, Path]) -> Gateway:
    return running[0]


@pytest.fixture
def services(running: tuple[Gateway, Services, Path]) -> Iterator[Services]:
    made = running[1]
    made.lifetime_s, made.failing = 3600.0, False
    yield made
    made.lifetime_s, made.failing = 3600.0, False


@pytest.fixture
def folder(running: tuple[Gateway, Services, Path]) -> Path:
    return running[2]


@pytest.fixture
def up() -> Iterator[Upstream]:
    with Upstream() as running:
        running.script(reply(completion("hi")))
        yield running


def connect(gateway: Gateway, provider: str, up: Upstream, **fields: Any) -> dict[str, Any]:
    return clouds.connect(gateway, provider, f"http://127.0.0.1:{up.port}", **fields)


def chat(gateway: Gateway, model: str) -> Any:
    body = {"model": model, "messages": [{"role": "user", "content": "hello"}]}
    return gateway.caller.post("/v1/chat/completions", json=body)


def called(gateway: Gateway, model: str, up: Upstream) -> Seen:
    answer = chat(gateway, model)
    assert answer.status_code == 200, answer.text
    return up.last


def test_the_role_of_an_instance_signs_calls(
    gateway: Gateway, services: Services, up: Upstream
) -> None:
    made = connect(gateway, "bedrock", up, authType="aws-instance", region="eu-west-1")
    assert (made["authType"], made["apiKey"], made["testStatus"]) == ("aws-instance", None, None)
    seen = called(gateway, GPT, up)
    assert seen.header("x-amz-security-token") == f"session-canary-{services.given}"
    assert seen.header("authorization") == signed_again(
        seen, "eu-west-1", "bedrock", encode_path=True
    )
    told = json.dumps(gateway.admin.get("/api/providers").json())
    assert "canary" not in told


def test_keys_are_renewed_before_they_end(
    gateway: Gateway, services: Services, up: Upstream
) -> None:
    services.lifetime_s = 4.0
    connect(gateway, "bedrock", up, authType="aws-instance", region="eu-west-1")
    first = called(gateway, GPT, up).header("x-amz-security-token")

    def is_renewed() -> bool:
        return called(gateway, GPT, up).header("x-amz-security-token") != first

    # After half of their life.
    eventually(is_renewed, "the keys were renewed", within_s=10)


def test_a_source_that_fails_is_told_and_tried_again(
    gateway: Gateway, services: Services, up: Upstream
) -> None:
    services.failing = True
    made = connect(gateway, "bedrock", up, authType="aws-instance", region="eu-west-1")
    assert made["testStatus"] == "error"
    assert made["lastError"] == "The instance metadata service answered 500."
    # It has no credential, so it is not called, and its models are not listed.
    assert chat(gateway, GPT).status_code in (400, 404, 503)
    assert up.requests == []
    tested = expect(gateway.admin.post(f"/api/providers/{made['id']}/test"), 200)
    assert (tested["valid"], tested["diagnosis"]) == (False, {"type": "auth"})

    services.failing = False
    eventually(lambda: chat(gateway, GPT).status_code == 200, "the call is served", within_s=20)
    shown = expect(gateway.admin.get(f"/api/providers/{made['id']}"), 200)["connection"]
    assert (shown["testStatus"], shown["lastError"]) == (None, None)


def test_a_profile_of_the_shared_files(gateway: Gateway, folder: Path, up: Upstream) -> None:
    (folder / "credentials").write_text(
        f"[work]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = {SECRET}\n"
    )
    made = connect(
        gateway, "bedrock", up, authType="aws-profile", awsProfile="work", region="eu-west-1"
    )
    seen = called(gateway, GPT, up)
    assert seen.header("authorization") == signed_again(
        seen, "eu-west-1", "bedrock", encode_path=True
    )

    # A change of other fields keeps the keys; another profile replaces them.
    path = f"/api/providers/{made['id']}"
    expect(gateway.admin.put(path, json={"priority": 7}), 200)
    called(gateway, GPT, up)
    other = {"providerSpecificData": {"awsProfile": "other"}}
    changed = expect(gateway.admin.put(path, json=other), 200)["connection"]
    assert changed["lastError"] == "There is no profile `other` in the shared files."
    assert chat(gateway, GPT).status_code in (400, 404, 503)
    back = {"providerSpecificData": {"awsProfile": "work"}}
    changed = expect(gateway.admin.put(path, json=back), 200)["connection"]
    assert (changed["testStatus"], changed["lastError"]) == (None, None)
    called(gateway, GPT, up)


def test_the_service_account_of_a_google_machine(
    gateway: Gateway, services: Services, up: Upstream
) -> None:
    connect(
        gateway, "vertex", up, authType="google-metadata", region="europe-west1", project="mine"
    )
    assert called(gateway, GEMINI, up).bearer == f"access-canary-{services.given}"


def test_an_application_of_entra(gateway: Gateway, services: Services, up: Upstream) -> None:
    app = {"tenantId": "tenant", "clientId": "client", "clientSecret": "app-canary"}
    connect(gateway, "azure", up, entraApp=app, apiVersion="2024-10-21")
    seen = called(gateway, "azure/gpt-4o", up)
    assert seen.bearer == f"access-canary-{services.given}"
    assert seen.header("api-key") is None
    assert seen.target == "/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21"


@pytest.mark.parametrize(
    ("provider", "fields", "param"),
    [
        ("openai", {"authType": "aws-instance"}, "authType"),
        ("bedrock", {"authType": "google-metadata"}, "authType"),
        ("vertex", {"authType": "entra"}, "authType"),
        ("azure", {"authType": "entra"}, "entraApp"),
        ("bedrock", {"authType": "aws-instance", "apiKey": "sk-a"}, "apiKey"),
        (
            "bedrock",
            {"authType": "aws-profile", "awsKeys": {"accessKeyId": "a", "secretAccessKey": "b"}},
            "awsKeys",
        ),
        (
            "vertex",
            {"authType": "google-metadata", "specific": {"baseUrl": "https://evil.example"}},
            "providerSpecificData.baseUrl",
        ),
        (
            "bedrock",
            {"authType": "aws-container", "specific": {"baseUrl": "https://evil.example"}},
            "providerSpecificData.baseUrl",
        ),
        (
            "bedrock",
            {"authType": "aws-web-identity", "specific": {"roleArn": "me"}},
            "providerSpecificData.roleArn",
        ),
    ],
)
def test_what_is_wrong_is_named(
    gateway: Gateway, provider: str, fields: dict[str, Any], param: str
) -> None:
    specific = {"project": "p", "resource": "r", **fields.get("specific", {})}
    rest = {name: value for name, value in fields.items() if name != "specific"}
    body = {"provider": provider, "name": "x", "providerSpecificData": specific, **rest}
    answer = gateway.admin.post("/api/providers", json=body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param), answer.text


def test_metadata_addresses_stay_closed_for_other_calls(gateway: Gateway) -> None:
    node = {
        "name": "metadata",
        "prefix": "metadata",
        "type": "openai-compatible",
        "baseUrl": "http://169.254.169.254/latest",
    }
    assert gateway.admin.post("/api/provider-nodes", json=node).status_code == 400
