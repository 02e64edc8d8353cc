"""A key in the query (`?key=`): on Gemini's routes alone, and nowhere written down."""

from __future__ import annotations

import httpx

from tests.support.processes import Gateway, expect

ASKED = {"contents": [{"parts": [{"text": "Say hello."}]}]}


def test_gemini_takes_a_key_in_the_query(gateway: Gateway, model: str) -> None:
    """Whole, streamed, lists and what control answers; a wrong key is refused, and so are two."""
    key = gateway.create_key()["key"]
    path = f"/v1beta/models/{model}"
    with gateway.client() as caller:
        whole = expect(caller.post(f"{path}:generateContent?key={key}", json=ASKED), 200)
        assert "Say hello." in whole["candidates"][0]["content"]["parts"][0]["text"]
        streamed = caller.post(f"{path}:streamGenerateContent?alt=sse&key={key}", json=ASKED)
        assert streamed.headers["content-type"].startswith("text/event-stream")
        assert "models" in expect(caller.get(f"/v1beta/models?key={key}"), 200)
        assert expect(caller.get(f"/v1beta/batches?key={key}&pageSize=2"), 200) == {
            "operations": []
        }
        refused = caller.get("/v1beta/models?key=sk-fl-" + "x" * 49)
        assert (refused.status_code, refused.json()["error"]["status"]) == (401, "UNAUTHENTICATED")
        assert caller.get(f"/v1beta/models?key={key}&key=other").status_code == 401
        other = {"x-goog-api-key": gateway.key}
        assert caller.get(f"/v1beta/models?key={key}", headers=other).status_code == 401
    assert key not in gateway.log


def test_nobody_else_does(gateway: Gateway, model: str) -> None:
    key = gateway.create_key(scopes=["manage"])["key"]
    body = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
    with gateway.client() as caller:
        for path in ("/v1/chat/completions", "/v1/messages", "/ollama/api/chat"):
            assert caller.post(f"{path}?key={key}", json=body).status_code == 401, path
        for path in ("/v1/models", "/api/keys", "/api/usage"):
            answer: httpx.Response = caller.get(f"{path}?key={key}")
            assert answer.status_code == 401, path
