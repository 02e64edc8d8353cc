"""Credentials that are more than a header: Amazon's signatures and Google's service accounts, judged by code of others
or by the standard's own words, never by the gateway's.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import threading
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from joserfc import jwt
from joserfc.jwk import RSAKey

from tests.support import clouds
from tests.support.processes import Gateway
from tests.support.upstream import Gate, Seen, Upstream, completion, reply

SECRET = "wJalrXUtnFEMI-canary-bPxRfiCYEXAMPLEKEY"
TOKEN = "ya29.canary-of-the-service-account"


def chat(gateway: Gateway, model: str) -> httpx.Response:
    body = {"model": model, "messages": [{"role": "user", "content": "hello"}]}
    return gateway.caller.post("/v1/chat/completions", json=body)


# ------------------------------------------------------------------------------------------ Amazon


def test_a_request_to_amazon_is_signed(gateway: Gateway, up: Upstream) -> None:
    up.script(reply(completion()))
    keys = {"accessKeyId": "AKIDEXAMPLE", "secretAccessKey": SECRET, "sessionToken": "session-1"}
    connection = connect(gateway, "bedrock", up, awsKeys=keys, region="eu-west-1")

    answer = chat(gateway, "bedrock/openai.gpt-oss-120b")

    assert answer.status_code == 200, answer.text
    assert up.last.header("x-amz-security-token") == "session-1"
    assert up.last.header("authorization") == signed_again(up.last, "eu-west-1", "bedrock")
    assert SECRET not in json.dumps(gateway.admin.get("/api/providers").json()) + gateway.log
    assert SECRET.encode() not in up.bytes_seen()
    assert connection["authType"] == "aws"


def signed_again(seen: Seen, region: str, service: str, *, encode_path: bool = False) -> str:
    """The signature by the standard's words, over what arrived. With `encode_path`, the path is encoded a second
    time, as for every service but S3.
    """
    at = seen.header("x-amz-date") or ""
    names = re.findall(r"SignedHeaders=([^,]+)", seen.header("authorization") or "")[0].split(";")
    parts = urlsplit(seen.target)
    canonical = "\n".join(
        [
            seen.method,
            quote(parts.path) if encode_path else parts.path,
            parts.query,
            *(f"{name}:{seen.header(name)}" for name in names),
            "",
            ";".join(names),
            hashlib.sha256(seen.body).hexdigest(),
        ]
    )
    scope = f"{at[:8]}/{region}/{service}/aws4_request"
    hashed = hashlib.sha256(canonical.encode()).hexdigest()
    key = f"AWS4{SECRET}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    text = f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{hashed}"
    signature = hmac.new(key, text.encode(), "sha256").hexdigest()
    about = f"Credential=AKIDEXAMPLE/{scope}, SignedHeaders={';'.join(names)}"
    return f"AWS4-HMAC-SHA256 {about}, Signature={signature}"


def test_a_key_of_bedrock_is_a_bearer_token(gateway: Gateway, up: Upstream) -> None:
    up.script(reply(completion()))
    connect(gateway, "bedrock", up, apiKey="bedrock-api-key-canary")

    assert chat(gateway, "bedrock/openai.gpt-oss-120b").status_code == 200
    assert up.last.bearer == "bedrock-api-key-canary"
    assert up.last.header("x-amz-date") is None


# ------------------------------------------------------------------------------------------ Google


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def account(key: rsa.RSAPrivateKey, tokens: Upstream) -> dict[str, Any]:
    """A key file as Google hands it out, with a token service of our own."""
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return {
        "type": "service_account",
        "project_id": "mine",
        "private_key_id": "key-1",
        "private_key": pem,
        "client_email": "robot@mine.iam.gserviceaccount.com",
        "token_uri": f"http://127.0.0.1:{tokens.port}/token",
    }


@pytest.mark.one_node(reason="each worker gets a token for itself")
def test_a_service_account_gets_one_token_for_all_who_come_at_once(
    gateway: Gateway, up: Upstream, key: rsa.RSAPrivateKey
) -> None:
    gate = Gate()
    up.script(reply(completion()))
    with Upstream() as tokens:
        granted = {"access_token": TOKEN, "expires_in": 3599, "token_type": "Bearer"}
        tokens.script([gate, *reply(granted)])
        connection = connect(gateway, "vertex", up, serviceAccount=account(key, tokens))
        answers: list[int] = []

        def ask() -> None:
            answers.append(chat(gateway, "vertex/google/gemini-2.5-pro").status_code)

        asking = [threading.Thread(target=ask) for _ in range(8)]
        for each in asking:
            each.start()
        assert gate.reached.wait(10)
        gate.open()
        for each in asking:
            each.join(20)

        assert answers == [200] * 8
        assert len(tokens.requests) == 1  # all eight had one
        asked = parse_qs(tokens.last.body.decode())
        assert asked["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
        token = jwt.decode(asked["assertion"][0], RSAKey.import_key(key.public_key()), ["RS256"])
        assert token.header["kid"] == "key-1"
        assert token.claims["iss"] == "robot@mine.iam.gserviceaccount.com"
        assert token.claims["aud"] == f"http://127.0.0.1:{tokens.port}/token"
        assert token.claims["exp"] - token.claims["iat"] == 3600
        assert {seen.bearer for seen in up.requests} == {TOKEN}
        tested = gateway.admin.post(f"/api/providers/{connection['id']}/test").json()
        assert tested["diagnosis"] == {"type": "invalid_answer"}  # a completion is no list
        assert up.last.header("authorization") == f"Bearer {TOKEN}"

        # Refused, it is asked for anew; what follows has the new one.
        up.script(reply({}, 401), reply(completion()))
        tokens.script(reply({**granted, "access_token": "second"}))
        chat(gateway, "vertex/google/gemini-2.5-pro")
        assert chat(gateway, "vertex/google/gemini-2.5-pro").status_code == 200
        assert up.last.bearer == "second"
    told = json.dumps(gateway.admin.get("/api/providers").json()) + gateway.log
    assert "PRIVATE KEY" not in told
    assert TOKEN not in told


def test_a_token_service_that_refuses_is_an_error_that_says_so(
    gateway: Gateway, up: Upstream, key: rsa.RSAPrivateKey
) -> None:
    with Upstream() as tokens:
        tokens.script(reply({"error": "invalid_grant"}, 400))
        connect(gateway, "vertex", up, serviceAccount=account(key, tokens))

        answer = chat(gateway, "vertex/google/gemini-2.5-pro")

        assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_auth")
        assert "token service" in answer.json()["error"]["message"]
        assert up.requests == []


# --------------------------------------------------------------------------- what is asked of a credential


def connect(gateway: Gateway, provider: str, up: Upstream, **fields: Any) -> dict[str, Any]:
    """The provider's one connection, at `up` in place of its own address."""
    return clouds.connect(gateway, provider, up.url, **fields)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"provider": "bedrock"}, "awsKeys"),
        ({"provider": "bedrock", "authType": "aws"}, "awsKeys"),
        ({"provider": "bedrock", "awsKeys": {"accessKeyId": "a"}}, "awsKeys.secretAccessKey"),
        (
            {"provider": "openai", "awsKeys": {"accessKeyId": "a", "secretAccessKey": "b"}},
            "authType",
        ),
        ({"provider": "vertex", "serviceAccount": {"type": "x"}}, "serviceAccount"),
        ({"provider": "vertex", "apiKey": "k"}, "providerSpecificData.project"),
        ({"provider": "azure", "apiKey": "k"}, "providerSpecificData.resource"),
        ({"provider": "ollama", "authType": "aws"}, "authType"),
    ],
)
def test_what_is_missing_or_wrong_is_named(
    gateway: Gateway, fields: dict[str, Any], param: str
) -> None:
    answer = gateway.admin.post("/api/providers", json={"name": "n", **fields})

    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == param


def test_what_runs_on_ones_own_machine_needs_no_key(gateway: Gateway, up: Upstream) -> None:
    up.script(reply(completion()))
    assert connect(gateway, "ollama", up)["authType"] == "none"

    assert chat(gateway, "ollama/qwen3").status_code == 200
    assert up.last.header("authorization") is None
