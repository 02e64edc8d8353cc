"""A token is of one delivery, to one listener, at one time."""

from __future__ import annotations

import base64
import hmac
from dataclasses import replace

import orjson
import pytest
from joserfc.jwk import RSAKey

from fairlead import _core
from fairlead.webhooks.token import ReceivedDelivery, verify_token

NOW_S = 1_795_279_399
AUDIENCE = "https://hooks.example.com/order/7"
KEY = RSAKey.generate_key(2048, {"kid": "k1"})
STRANGER = RSAKey.generate_key(2048, {"kid": "k1"})


def jwks(key: RSAKey = KEY) -> bytes:
    public = key.as_dict(private=False)
    return orjson.dumps({"keys": [{**public, "kid": "k1", "use": "sig", "alg": "RS256"}]})


def received(key: RSAKey = KEY) -> ReceivedDelivery:
    pem = key.as_pem(private=True).decode()
    token = _core.sign_webhook_token(
        pem, "k1", "https://gateway.example.com", AUDIENCE, "msg_1", NOW_S, b'{"a": 1}'
    )
    return ReceivedDelivery("msg_1", str(NOW_S), token, b'{"a": 1}')


def test_a_genuine_delivery() -> None:
    verify_token(jwks(), received(), AUDIENCE, NOW_S + 299, 300)


GENUINE = received()
BROKEN = [
    (replace(GENUINE, body=b'{"a": 2}'), AUDIENCE, NOW_S, "another body"),
    (replace(GENUINE, message_id="msg_2"), AUDIENCE, NOW_S, "another message"),
    (replace(GENUINE, timestamp=str(NOW_S + 1)), AUDIENCE, NOW_S, "another time"),
    (GENUINE, "https://hooks.example.com/order/8", NOW_S, "another listener"),
    (GENUINE, AUDIENCE, NOW_S + 301, "more than 300 s off"),
    (GENUINE, AUDIENCE, NOW_S - 301, "more than 300 s off"),
    (received(STRANGER), AUDIENCE, NOW_S, "no key of the JWKS"),
    (replace(GENUINE, signature="v1,abc"), AUDIENCE, NOW_S, "no key of the JWKS"),
    (replace(GENUINE, signature=""), AUDIENCE, NOW_S, "no key of the JWKS"),
]


@pytest.mark.parametrize(("one", "audience", "now_s", "said"), BROKEN)
def test_another_delivery(one: ReceivedDelivery, audience: str, now_s: int, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        verify_token(jwks(), one, audience, now_s, 300)


def test_the_public_key_is_no_secret() -> None:
    """A token signed with HMAC and the published key, and one that nobody signed."""
    header, claims, _ = GENUINE.signature.split(".")
    said = orjson.dumps({"alg": "HS256", "kid": "k1"})
    signed = f"{encoded(said)}.{claims}"
    forged = hmac.digest(KEY.as_pem(private=False), signed.encode(), "sha256")
    unsigned = f"{encoded(orjson.dumps({'alg': 'none'}))}.{claims}."
    for token in (f"{signed}.{encoded(forged)}", unsigned, f"{header}.{claims}."):
        with pytest.raises(ValueError, match="no key of the JWKS"):
            verify_token(jwks(), replace(GENUINE, signature=token), AUDIENCE, NOW_S, 300)


def encoded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).decode().rstrip("=")


@pytest.mark.parametrize("keys", [b"", b"[]", b"{}", b'{"keys": [{}]}', b'{"keys": 1}'])
def test_what_is_no_jwks(keys: bytes) -> None:
    with pytest.raises(ValueError, match="JWKS"):
        verify_token(keys, GENUINE, AUDIENCE, NOW_S, 300)
