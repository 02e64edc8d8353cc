"""Nobody reads what a key has stored: no other key while it is there, and nobody once it is deleted."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx

from tests.support.processes import Gateway
from tests.support.sdk_clients import anthropic_client, openai_client


def store_all(gateway: Gateway, key: str, model: str) -> list[str]:
    """A file, an upload, batches of two dialects and a cached content; the paths at which they are read."""
    line = {
        "custom_id": "1",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {"model": model, "messages": [{"role": "user", "content": "hello"}]},
    }
    params: Any = {"model": model, "max_tokens": 9, "messages": line["body"]["messages"]}
    with openai_client(gateway, key) as client, anthropic_client(gateway, key) as other:
        file = client.files.create(file=("in.jsonl", json.dumps(line).encode()), purpose="batch")
        batch = client.batches.create(
            input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
        )
        upload = client.uploads.create(
            bytes=4, filename="a.txt", mime_type="text/plain", purpose="user_data"
        )
        client.uploads.parts.create(upload.id, data=b"data")
        messages = other.messages.batches.create(requests=[{"custom_id": "1", "params": params}])
    cached = caller(gateway, key)(
        "POST",
        "/v1beta/cachedContents",
        json={"model": f"models/{model}", "contents": [{"parts": [{"text": "secret"}]}]},
    )
    assert cached.status_code == 200, cached.text
    return [
        f"/v1/files/{file.id}",
        f"/v1/files/{file.id}/content",
        f"/v1/batches/{batch.id}",
        f"/v1/messages/batches/{messages.id}",
        f"/v1beta/{cached.json()['name']}",
        f"/v1/uploads/{upload.id}/complete",
    ]


def caller(gateway: Gateway, key: str) -> Callable[..., httpx.Response]:
    headers = {"Authorization": f"Bearer {key}", "anthropic-version": "2023-06-01"}

    def call(method: str, path: str, **more: Any) -> httpx.Response:
        # A file is read in Anthropic's form by whoever sends its header.
        sent = headers if "/messages/" in path else {"Authorization": headers["Authorization"]}
        return gateway.client().request(method, path, headers=sent, **more)

    return call


def read(gateway: Gateway, key: str, path: str) -> int:
    if path.endswith("/complete"):
        return caller(gateway, key)("POST", path, json={"part_ids": ["part-unknown"]}).status_code
    return caller(gateway, key)("GET", path).status_code


def test_what_a_key_stored_is_read_by_nobody_else(gateway: Gateway, model: str) -> None:
    """Not by another key, and not by one that is given the name of the deleted one."""
    owner = gateway.create_key(name="owner")
    stranger = gateway.create_key(name="stranger")
    paths = store_all(gateway, owner["key"], model)
    for path in paths:
        assert read(gateway, stranger["key"], path) == 404, path
        assert read(gateway, owner["key"], path) in (200, 400), path
    gateway.admin.delete(f"/api/keys/{owner['id']}").raise_for_status()
    heir = gateway.create_key(name="owner")
    for path in paths:
        assert read(gateway, owner["key"], path) == 401, path
        assert read(gateway, stranger["key"], path) == 404, path
        assert read(gateway, heir["key"], path) == 404, path
