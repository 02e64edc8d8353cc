"""The headers of deliveries, whatever they hold: signatures that a receiver verifies, and the wishes of listeners."""

from __future__ import annotations

import base64
import hashlib
import time
from functools import cache

import joserfc.jwt
import orjson
import standardwebhooks
from hypothesis import example, given
from hypothesis import strategies as st
from joserfc.jwk import KeySet, RSAKey

from fairlead import _core
from fairlead.webhooks.schedule import RETRY_AFTER_MAX_S, parse_retry_after
from fairlead.webhooks.token import ReceivedDelivery, verify_token
from tests.fuzz.budget import at_most, budget_of

AUDIENCE = "https://listener.example/hook"
NOW_S = 1_800_000_000
HEADER = st.text(max_size=600)
IDS = st.text("abcdefghijklmnopqrstuvwxyz0123456789_-", min_size=1, max_size=64)
TIMES = st.integers(NOW_S - 400, NOW_S + 400)
SECRETS = st.lists(
    st.binary(min_size=24, max_size=64).map(lambda key: f"whsec_{base64.b64encode(key).decode()}"),
    min_size=2,
    max_size=4,
    unique=True,
)


def is_genuine(
    secrets: list[str], message_id: str, timestamp: str, signature: str, body: bytes
) -> bool:
    """Whether the delivery verifies; anything but a yes or a `ValueError` fails the test."""
    try:
        _core.verify_webhook(secrets, message_id, timestamp, signature, body, NOW_S)
    except ValueError:
        return False
    return True


@budget_of(1 / 6)
@given(HEADER, HEADER, HEADER, st.binary(max_size=200))
@example("msg_1", "\u0661\u0662\u0663", "v1,", b"")
@example("msg_1", "9" * 400, "v1," * 200, b"")
@example("a.1", str(NOW_S), "v1,AAAA", b"")
def test_what_nobody_signed_is_never_genuine(
    message_id: str, timestamp: str, signature: str, body: bytes
) -> None:
    secret = _core.new_webhook_secret()
    assert not is_genuine([secret], message_id, timestamp, signature, body)


@budget_of(1 / 6)
@given(
    SECRETS,
    IDS,
    TIMES,
    st.binary(max_size=400),
    st.lists(st.sampled_from(["v1a,AAAA", "v1,AAAA", "v2,x", "junk"]), max_size=8),
    st.integers(0, 8),
    st.sampled_from(["id", "time", "body", "signature", "secret"]),
)
def test_what_was_signed_is_genuine_for_whoever_checks_and_nothing_else_is(
    secrets: list[str],
    message_id: str,
    sent_s: int,
    body: bytes,
    crowd: list[str],
    place: int,
    changed: str,
) -> None:
    *signers, stranger = secrets
    signature = _core.sign_webhook(signers, message_id, sent_s, body)
    is_of_now = abs(NOW_S - sent_s) <= 300
    # Signatures of other versions and other senders may stand around ours.
    crowded = " ".join([*crowd[:place], signature, *crowd[place:]])
    for one in signers:
        assert is_genuine([one], message_id, str(sent_s), signature, body) == is_of_now
        assert is_genuine([one], message_id, str(sent_s), crowded, body) == is_of_now

    forged = {
        "id": (signers, message_id + "x", str(sent_s), signature, body),
        "time": (signers, message_id, str(sent_s + 1), signature, body),
        "body": (signers, message_id, str(sent_s), signature, body + b"\0"),
        "signature": (signers, message_id, str(sent_s), signature.replace("v1,", "v1,A"), body),
        "secret": ([stranger], message_id, str(sent_s), signature, body),
    }
    assert not is_genuine(*forged[changed])


@budget_of(1 / 6)
@given(IDS, st.text(max_size=200))
def test_the_reference_library_verifies_what_we_sign(message_id: str, text: str) -> None:
    secret, now_s = _core.new_webhook_secret(), int(time.time())
    body = orjson.dumps({"text": text})
    headers = {
        "webhook-id": message_id,
        "webhook-timestamp": str(now_s),
        "webhook-signature": _core.sign_webhook([secret], message_id, now_s, body),
    }
    assert standardwebhooks.Webhook(secret).verify(body, headers) == {"text": text}


@cache
def issuer() -> tuple[RSAKey, bytes]:
    """A key and its published half."""
    key = RSAKey.generate_key(2048, {"kid": "one"}, auto_kid=False)
    return key, orjson.dumps(KeySet([key]).as_dict(private=False))


CLAIM = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=40), st.lists(st.text())
)


@budget_of(1 / 6)
@given(
    st.fixed_dictionaries(
        {}, optional=dict.fromkeys(("aud", "jti", "iat", "exp", "body_sha256"), CLAIM)
    ),
    st.one_of(HEADER, st.just("None"), st.just(str(NOW_S))),
    st.binary(max_size=100),
)
@example({"aud": AUDIENCE, "jti": "m"}, "None", b"")
@example({"aud": AUDIENCE, "jti": "m", "iat": float("inf")}, "inf", b"")
def test_a_token_with_any_claims_is_refused_in_words(
    claims: dict[str, object], timestamp: str, body: bytes
) -> None:
    """Even a genuine issuer's, of this body: nothing else than a delivery's own claims is taken."""
    key, keys = issuer()
    if "body_sha256" not in claims:
        digest = base64.urlsafe_b64encode(hashlib.sha256(body).digest()).decode()
        claims["body_sha256"] = digest.rstrip("=")
    try:
        token = joserfc.jwt.encode({"alg": "RS256", "kid": "one"}, claims, key)
    except (ValueError, TypeError):
        return  # what JSON cannot hold
    received = ReceivedDelivery("m", timestamp, token, body)
    try:
        verify_token(keys, received, AUDIENCE, NOW_S, 300)
    except ValueError:
        return
    assert claims["aud"] == AUDIENCE
    assert claims["jti"] == "m"


@budget_of(1 / 6)
@given(st.one_of(HEADER, st.from_regex(r"\A[!-~]{0,60}\.[!-~]{0,60}\.[!-~]{0,60}\Z")))
def test_no_text_passes_for_a_token(token: str) -> None:
    _, keys = issuer()
    try:
        verify_token(keys, ReceivedDelivery("m", str(NOW_S), token, b""), AUDIENCE, NOW_S, 300)
    except ValueError:
        return
    raise AssertionError(f"{token!r} was taken for a token")


@budget_of(1 / 6)
@given(
    st.one_of(
        HEADER,
        st.from_regex(
            r"\A[A-Za-z]{3}, \d{1,4} [A-Za-z]{3} \d{1,6} \d{1,3}:\d{1,3}:\d{1,3} .{0,8}\Z"
        ),
        st.integers().map(str),
    )
)
@example("Mon, 01 Jan 0001 00:00:00 +2359")
@example("Fri, 31 Dec 9999 23:59:59 -2359")
@example("1" * 13)
def test_any_wish_of_a_listener_is_bounded(value: str) -> None:
    wait_s = parse_retry_after(value, NOW_S * 1000)
    assert wait_s is None or 0 <= wait_s <= RETRY_AFTER_MAX_S


def test_a_long_wish_costs_little() -> None:
    with at_most(0.5):
        for piece in ("1", "(", " ", "Mon, ", '"', "\\", "+"):
            parse_retry_after(piece * (16_384 // len(piece)), NOW_S * 1000)
