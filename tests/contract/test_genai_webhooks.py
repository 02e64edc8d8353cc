"""The official `google-genai` client manages webhooks, and the official libraries verify what they get."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from typing import Any

import joserfc.jwt
import jwt
import pytest
import standardwebhooks
import svix
from joserfc.jwk import KeySet

from tests.support.listener import Listener
from tests.support.polling import holds_for
from tests.support.processes import Gateway
from tests.support.sdk_clients import GenaiCaller
from tests.support.sdks import openai

BATCH_EVENTS = ["batch.succeeded", "batch.cancelled", "batch.expired", "batch.failed"]


@pytest.fixture
def model(loopback_standin: dict[str, str]) -> str:
    return f"{loopback_standin['openai']}/standin"


def create_batch(caller: GenaiCaller, *bodies: dict[str, Any], **more: Any) -> Any:
    lines = [
        {"custom_id": f"r{at}", "method": "POST", "url": "/v1/chat/completions", "body": body}
        for at, body in enumerate(bodies)
    ]
    content = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    file = caller.openai.files.create(file=("in.jsonl", content), purpose="batch")
    return caller.openai.batches.create(
        input_file_id=file.id, completion_window="24h", endpoint="/v1/chat/completions", **more
    )


def chat(model: str) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": "hello"}]}


@pytest.mark.parametrize("version", [None, "v1beta"])
def test_a_webhook_is_made_shown_changed_and_deleted(
    callers: Callable[..., GenaiCaller], listener: Listener, version: str | None
) -> None:
    caller = callers(version)
    made = caller.add_webhook(f"{listener.url}/ok", *BATCH_EVENTS, name="mine")
    assert (made.name, made.state, made.uri) == ("mine", "enabled", f"{listener.url}/ok")
    assert made.subscribed_events == BATCH_EVENTS
    secret = made.new_signing_secret
    assert secret.startswith("whsec_")
    assert [each.truncated_secret for each in made.signing_secrets] == [f"whsec_...{secret[-4:]}"]
    assert made.signing_secrets[0].expire_time is None
    assert made.create_time == made.update_time
    shown = caller.genai.webhooks.get(id=made.id)
    assert shown.new_signing_secret is None
    assert shown.model_dump() == {
        name: value for name, value in made.model_dump().items() if name != "new_signing_secret"
    }
    changed = caller.genai.webhooks.update(
        id=made.id, update_mask="state", state="disabled", name="no"
    )
    assert (changed.state, changed.name) == ("disabled", "mine")
    assert changed.update_time > made.update_time
    changed = caller.genai.webhooks.update(
        id=made.id, subscribed_events=["video.generated"], name="new"
    )
    assert (changed.name, changed.subscribed_events) == ("new", ["video.generated"])
    assert changed.state == "disabled"
    caller.genai.webhooks.delete(id=made.id)
    with pytest.raises(Exception, match="There is no webhook with this id") as gone:
        caller.genai.webhooks.get(id=made.id)
    assert gone.value.status_code == 404  # type: ignore[attr-defined]


def test_webhooks_are_listed_page_by_page(
    callers: Callable[..., GenaiCaller], listener: Listener
) -> None:
    caller = callers()
    assert caller.genai.webhooks.list().webhooks == []
    made = [caller.add_webhook(f"{listener.url}/ok", name=str(n)).id for n in range(5)]
    seen, token, pages = [], None, 0
    while token != "":
        page = caller.genai.webhooks.list(page_size=2, **({"page_token": token} if token else {}))
        seen += [each.id for each in page.webhooks]
        token, pages = page.next_page_token, pages + 1
    assert (seen, pages) == (made, 3)
    assert [each.id for each in caller.genai.webhooks.list().webhooks] == made
    with pytest.raises(Exception, match="page_token must be"):
        caller.genai.webhooks.list(page_token="nonsense")


def test_a_webhook_is_of_its_key_alone(
    callers: Callable[..., GenaiCaller], listener: Listener
) -> None:
    mine, stranger = callers(), callers()
    made = mine.add_webhook(f"{listener.url}/ok")
    assert stranger.genai.webhooks.list().webhooks == []
    for act in (
        lambda: stranger.genai.webhooks.get(id=made.id),
        lambda: stranger.genai.webhooks.update(id=made.id, state="disabled"),
        lambda: stranger.genai.webhooks.delete(id=made.id),
        lambda: stranger.genai.webhooks.ping(id=made.id),
        lambda: stranger.genai.webhooks.rotate_signing_secret(id=made.id),
    ):
        with pytest.raises(Exception, match="There is no webhook with this id"):
            act()
    assert mine.genai.webhooks.get(id=made.id).state == "enabled"


def test_webhooks_of_a_revoked_key_are_gone(loopback_gateway: Gateway, listener: Listener) -> None:
    key = loopback_gateway.create_key(name="short-lived")
    with loopback_gateway.client(headers={"x-goog-api-key": key["key"]}) as caller:
        body = {"uri": f"{listener.url}/ok", "subscribed_events": ["*"]}
        webhook = caller.post("/v1/webhooks", json=body).json()
        loopback_gateway.canaries.append(webhook["new_signing_secret"])
        assert loopback_gateway.admin.delete(f"/api/keys/{key['id']}").status_code == 200
        refused = caller.get(f"/v1/webhooks/{webhook['id']}")
    assert (refused.status_code, refused.json()["error"]["status"]) == (401, "UNAUTHENTICATED")


def test_a_ping_and_a_rotation_with_both_signatures(
    callers: Callable[..., GenaiCaller], listener: Listener
) -> None:
    caller = callers()
    made = caller.add_webhook(f"{listener.url}/ok")
    caller.genai.webhooks.ping(id=made.id)
    (first,) = listener.wait_for()
    assert (first.event["type"], first.event["version"]) == ("test.ping", "v1")
    standardwebhooks.Webhook(made.new_signing_secret).verify(first.body, first.headers)
    new = caller.genai.webhooks.rotate_signing_secret(
        id=made.id, revocation_behavior="revoke_previous_secrets_after_h24"
    ).secret
    caller.gateway.canaries.append(new)
    shown = caller.genai.webhooks.get(id=made.id)
    assert [each.expire_time is None for each in shown.signing_secrets] == [True, False]
    caller.genai.webhooks.ping(id=made.id)
    both = listener.wait_for(count=2)[1]
    for secret in (new, made.new_signing_secret):
        for verifier in (standardwebhooks.Webhook(secret), svix.Webhook(secret)):
            verifier.verify(both.body, both.headers)
    path = f"/v1/webhooks/{made.id}/rotate_secret"
    with caller.gateway.client(headers={"x-goog-api-key": caller.key}) as plain:
        answer = plain.post(
            path, json={"revocation_behavior": "REVOKE_PREVIOUS_SECRETS_IMMEDIATELY"}
        )
        history = plain.get(f"/v1/webhooks/{made.id}/deliveries").json()
    assert answer.status_code == 200
    last_secret = answer.json()["secret"]
    caller.gateway.canaries.append(last_secret)
    assert len(caller.genai.webhooks.get(id=made.id).signing_secrets) == 1
    caller.genai.webhooks.ping(id=made.id)
    last = listener.wait_for(count=3)[2]
    standardwebhooks.Webhook(last_secret).verify(last.body, last.headers)
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        standardwebhooks.Webhook(new).verify(last.body, last.headers)
    assert [each["state"] for each in history["deliveries"]] == ["delivered", "delivered"]
    assert history["next"] is None


def test_deliveries_are_paged_by_their_place(
    callers: Callable[..., GenaiCaller], listener: Listener
) -> None:
    caller = callers()
    made = caller.add_webhook(f"{listener.url}/ok")
    path = f"/v1/webhooks/{made.id}/deliveries"
    for _ in range(3):
        caller.genai.webhooks.ping(id=made.id)
    with caller.gateway.client(headers={"x-goog-api-key": caller.key}) as plain:
        whole = [each["id"] for each in plain.get(path).json()["deliveries"]]
        seen: list[str] = []
        after: str | None = ""
        while after is not None:
            page = plain.get(path, params={"limit": 1, "after": after}).json()
            seen += [each["id"] for each in page["deliveries"]]
            after = page["next"]
            if len(seen) == 1:
                # What arrives meanwhile moves no page.
                caller.genai.webhooks.ping(id=made.id)
        assert seen == whole
        by_offset = plain.get(path, params={"limit": 1, "offset": 1}).json()["deliveries"]
        assert [each["id"] for each in by_offset] == whole[:1]
        wrong = plain.get(path, params={"after": "x"})
    assert (wrong.status_code, wrong.json()["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert "after" in wrong.json()["error"]["message"]


REFUSED = [
    ({"subscribed_events": ["*"]}, "uri"),
    ({"uri": "https://203.0.113.7/", "subscribed_events": []}, "subscribed_events"),
    ({"uri": "https://203.0.113.7/", "subscribed_events": ["batch.done"]}, "batch.succeeded"),
    ({"uri": "http://169.254.169.254/", "subscribed_events": ["*"]}, "uri"),
    ({"uri": "https://203.0.113.7/", "subscribed_events": ["*"], "secret": "x"}, "secret"),
]


@pytest.mark.parametrize(("body", "said"), REFUSED)
def test_what_is_refused_is_told_in_googles_shape(
    callers: Callable[..., GenaiCaller], body: dict[str, Any], said: str
) -> None:
    caller = callers()
    with caller.gateway.client(headers={"x-goog-api-key": caller.key}) as plain:
        answer = plain.post("/v1/webhooks", json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["status"]) == (400, 400, "INVALID_ARGUMENT")
    assert said in error["message"]


@pytest.mark.parametrize(
    ("mask", "body", "said"),
    [
        ("id", {"id": "x"}, "update_mask names id"),
        ("uri", {"state": "enabled"}, "the body does not have it"),
        (None, {}, "nothing to change"),
        ("state", {"state": "disabled_due_to_failed_deliveries"}, "state"),
    ],
)
def test_a_change_that_is_none_is_refused(
    callers: Callable[..., GenaiCaller],
    listener: Listener,
    mask: str | None,
    body: dict[str, Any],
    said: str,
) -> None:
    caller = callers()
    made = caller.add_webhook(f"{listener.url}/ok")
    query = {} if mask is None else {"update_mask": mask}
    with caller.gateway.client(headers={"x-goog-api-key": caller.key}) as plain:
        answer = plain.patch(f"/v1/webhooks/{made.id}", json=body, params=query)
    assert answer.status_code == 400
    assert said in answer.json()["error"]["message"]


def test_without_a_key_there_are_none(loopback_gateway: Gateway) -> None:
    with loopback_gateway.client() as nobody:
        answer = nobody.get("/v1/webhooks")
    assert (answer.status_code, answer.json()["error"]["status"]) == (401, "UNAUTHENTICATED")
    # A manager is no owner either.
    assert loopback_gateway.admin.get("/v1/webhooks").status_code == 401


def test_a_batch_tells_its_owners_webhooks(
    callers: Callable[..., GenaiCaller], listener: Listener, model: str
) -> None:
    caller, stranger = callers(), callers()
    made = caller.add_webhook(f"{listener.url}/ok", *BATCH_EVENTS)
    caller.add_webhook(f"{listener.url}/status/200", "video.generated")
    stranger.add_webhook(f"{listener.url}/status/204")
    done = create_batch(caller, chat(model), chat(model))
    broken = create_batch(caller, {"model": model}, chat(model), metadata={"a": "b"})
    bad = caller.openai.files.create(file=("in.jsonl", b"no json\n"), purpose="batch")
    failed = caller.openai.batches.create(
        input_file_id=bad.id, completion_window="24h", endpoint="/v1/chat/completions"
    )
    told = {one.event["data"]["id"]: one for one in listener.wait_for(count=3)}
    assert set(told) == {done.id, broken.id, failed.id}
    for one in told.values():
        assert set(one.event) == {"type", "version", "timestamp", "data"}
        for verifier in (
            standardwebhooks.Webhook(made.new_signing_secret),
            svix.Webhook(made.new_signing_secret),
        ):
            verifier.verify(one.body, one.headers)
    success = told[done.id].event
    assert success["type"] == "batch.succeeded"
    output_id = caller.openai.batches.retrieve(done.id).output_file_id
    assert success["data"]["output_file_uri"].endswith(f"/v1/files/{output_id}/content")
    with caller.gateway.client(headers={"authorization": f"Bearer {caller.key}"}) as plain:
        output = plain.get(success["data"]["output_file_uri"])
    assert len(output.content.splitlines()) == 2
    failure = told[failed.id].event
    assert failure["type"] == "batch.failed"
    assert set(failure["data"]) == {"id", "error_code", "error_message"}
    assert failure["data"]["error_code"]
    holds_for(lambda: len(listener.received()) == 3, "nobody else is told", for_s=1.0, every_s=0.1)


def test_a_cancelled_batch_tells_it_once(
    callers: Callable[..., GenaiCaller], listener: Listener, model: str
) -> None:
    caller = callers()
    caller.add_webhook(f"{listener.url}/ok", *BATCH_EVENTS)
    slow = f"{model}@latency_ms=1500"
    batch = create_batch(caller, *[chat(slow)] * 20)
    caller.openai.batches.cancel(batch.id)
    (told,) = listener.wait_for()
    assert (told.event["type"], told.event["data"]) == ("batch.cancelled", {"id": batch.id})
    assert caller.openai.batches.retrieve(batch.id).status == "cancelled"


def test_a_job_tells_its_own_listeners_with_a_token(
    callers: Callable[..., GenaiCaller], listener: Listener, model: str
) -> None:
    """Its own listeners stand in the place of the owner's; PyJWT and joserfc verify with the published key."""
    caller = callers()
    caller.add_webhook(f"{listener.url}/ok")
    uris = [f"{listener.url}/status/200", f"{listener.url}/flaky/1"]
    config = {"uris": uris, "user_metadata": {"order": 7, "who": {"name": "é"}}}
    batch = create_batch(caller, chat(model), extra_body={"webhook_config": config})
    (told,) = listener.wait_for("/status/200")
    assert told.event["type"] == "batch.succeeded"
    assert told.event["data"]["id"] == batch.id
    assert told.event["user_metadata"] == config["user_metadata"]
    token = told.headers["webhook-signature"]
    jwks_url = f"{caller.gateway.url}/.well-known/jwks.json"
    key = jwt.PyJWKClient(jwks_url).get_signing_key_from_jwt(token)
    claims = jwt.decode(token, key.key, algorithms=["RS256"], audience=uris[0])
    assert claims["jti"] == told.message_id
    assert claims["iat"] == int(told.headers["webhook-timestamp"])
    digest = hashlib.sha256(told.body).digest()
    assert claims["body_sha256"] == base64.urlsafe_b64encode(digest).decode().rstrip("=")
    with pytest.raises(jwt.InvalidAudienceError):
        jwt.decode(token, key.key, algorithms=["RS256"], audience=uris[1])
    with caller.gateway.client() as anybody:
        keys = KeySet.import_key_set(anybody.get("/.well-known/jwks.json").json())
    assert joserfc.jwt.decode(token, keys, algorithms=["RS256"]).claims == claims
    assert all("d" not in each.as_dict() for each in keys.keys)
    assert listener.received("/ok") == []
    (first,) = listener.wait_for("/flaky/1")[:1]
    assert first.message_id == told.message_id
    assert first.headers["webhook-signature"] != token


def test_metadata_alone_goes_to_the_owners_webhooks(
    callers: Callable[..., GenaiCaller], listener: Listener, model: str
) -> None:
    caller = callers()
    made = caller.add_webhook(f"{listener.url}/ok", "batch.succeeded")
    create_batch(caller, chat(model), extra_body={"webhook_config": {"user_metadata": {"a": 1}}})
    (told,) = listener.wait_for()
    assert told.event["user_metadata"] == {"a": 1}
    standardwebhooks.Webhook(made.new_signing_secret).verify(told.body, told.headers)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"uris": ["http://169.254.169.254/x"]}, "webhook_config.uris[0]"),
        ({"uris": ["ftp://203.0.113.7/"]}, "webhook_config.uris[0]"),
        ({"uris": ["https://203.0.113.7/"] * 6}, "webhook_config.uris"),
        ({"user_metadata": {"a": "x" * 5000}}, "user_metadata"),
        ({"user_metadata": {"a": 2**70}}, "user_metadata"),
        ({"url": "https://203.0.113.7/"}, "url"),
    ],
)
def test_a_config_that_breaks_a_rule_is_refused(
    callers: Callable[..., GenaiCaller], model: str, config: dict[str, Any], said: str
) -> None:
    caller = callers()
    with pytest.raises(openai.BadRequestError, match=said.replace("[", r"\[")):
        create_batch(caller, chat(model), extra_body={"webhook_config": config})
    assert list(caller.openai.batches.list()) == []
