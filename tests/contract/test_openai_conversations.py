"""The official `openai` client stores conversations, and responses continue them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.polling import eventually
from tests.support.processes import Gateway
from tests.support.sdk_clients import openai_client
from tests.support.sdks import openai
from tests.support.upstream import (
    Upstream,
    completion,
    delta,
    finish,
    reply,
    stream,
    usage_event,
)


@pytest.fixture
def client(gateway: Gateway) -> Iterator[openai.OpenAI]:
    with openai_client(gateway, gateway.create_key(name="conversations")["key"]) as made:
        yield made


@pytest.fixture
def stranger(gateway: Gateway) -> Iterator[openai.OpenAI]:
    with openai_client(gateway, gateway.create_key(name="stranger")["key"]) as made:
        yield made


def message(text: str, role: str = "user") -> Any:
    return {"type": "message", "role": role, "content": text}


def texts(items: Any) -> list[str]:
    return [part.text for item in items for part in item.content]


def test_a_conversation_from_creation_to_deletion(
    client: openai.OpenAI, stranger: openai.OpenAI
) -> None:
    made = client.conversations.create(metadata={"topic": "a"}, items=[message("one")])
    assert (made.id[:5], made.object, made.metadata) == ("conv_", "conversation", {"topic": "a"})
    assert client.conversations.retrieve(made.id) == made
    changed = client.conversations.update(made.id, metadata={"topic": "b"})
    assert changed.metadata == {"topic": "b"}
    calls: list[Any] = [
        lambda: stranger.conversations.retrieve(made.id),
        lambda: stranger.conversations.update(made.id, metadata={}),
        lambda: stranger.conversations.delete(made.id),
        lambda: stranger.conversations.items.list(made.id),
        lambda: stranger.conversations.items.create(made.id, items=[message("x")]),
    ]
    for call in calls:
        with pytest.raises(openai.NotFoundError):
            call()
    gone = client.conversations.delete(made.id)
    assert (gone.id, gone.object, gone.deleted) == (made.id, "conversation.deleted", True)
    with pytest.raises(openai.NotFoundError, match="No such conversation"):
        client.conversations.items.list(made.id)


def test_items_are_added_listed_and_deleted(client: openai.OpenAI) -> None:
    made = client.conversations.create()
    call: Any = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
    output: Any = {"type": "function_call_output", "call_id": "c1", "output": "1"}
    added = client.conversations.items.create(
        made.id, items=[message("one"), call, output, message("two", "assistant")]
    )
    kinds = [item.type for item in added.data]
    assert kinds == ["message", "function_call", "function_call_output", "message"]
    assert (added.first_id, added.last_id) == (added.data[0].id, added.data[-1].id)
    assert added.data[0].content[0].type == "input_text"
    assert added.data[3].content[0].type == "output_text"
    ids = [item.id for item in added.data]
    # The client reads all pages; the last item comes first.
    assert [item.id for item in client.conversations.items.list(made.id, limit=3)] == ids[::-1]
    page = client.conversations.items.list(made.id, order="asc", after=ids[0], limit=2)
    assert [item.id for item in page.data] == ids[1:3]
    assert page.has_more is True
    one = client.conversations.items.retrieve(
        ids[0], conversation_id=made.id, include=["reasoning.encrypted_content"]
    )
    assert texts([one]) == ["one"]
    assert client.conversations.items.delete(ids[0], conversation_id=made.id).id == made.id
    with pytest.raises(openai.NotFoundError, match="No such item"):
        client.conversations.items.retrieve(ids[0], conversation_id=made.id)
    # An id that is there already is another item's.
    again = client.conversations.items.create(made.id, items=[{**message("x"), "id": ids[3]}])
    assert again.data[0].id != ids[3]


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([{"content": "x"}], "items[0] must have a `type`"),
        ([{"type": "item_reference", "id": "msg_1"}], "send the item itself"),
        ([], "items"),
    ],
)
def test_what_an_item_may_not_be(client: openai.OpenAI, items: Any, said: str) -> None:
    made = client.conversations.create()
    with pytest.raises(openai.BadRequestError) as refused:
        client.conversations.items.create(made.id, items=items)
    assert said in refused.value.message


@pytest.mark.parametrize("streamed", (False, True), ids=("plain", "streamed"))
@pytest.mark.parametrize("stores", (True, False), ids=("stored", "unstored"))
def test_responses_continue_a_conversation(
    client: openai.OpenAI, gateway: Gateway, upstream: Upstream, streamed: bool, stores: bool
) -> None:
    """The provider is sent all items; input and output are added, whether or not the response itself is stored."""
    lane = gateway.add_lane(upstream)
    made = client.conversations.create(items=[message("the first", "developer")])
    for at, asked in enumerate(("one", "two")):
        answer = f"answer {at}"
        if streamed:
            upstream.script(stream_of(answer))
            with client.responses.stream(
                model=f"{lane.prefix}/m", input=asked, conversation=made.id, store=stores
            ) as events:
                response = events.get_final_response()
        else:
            upstream.script(reply(completion(answer)))
            response = client.responses.create(
                model=f"{lane.prefix}/m", input=asked, conversation={"id": made.id}, store=stores
            )
        assert response.output_text == answer
        assert response.conversation is not None
        assert response.conversation.id == made.id
    sent = [turn["content"] for turn in upstream.last.json()["messages"]]
    assert sent == ["the first", "one", "answer 0", "two"]
    found = texts(client.conversations.items.list(made.id, order="asc"))
    assert found == ["the first", "one", "answer 0", "two", "answer 1"]
    if stores:
        assert client.responses.retrieve(response.id).output_text == "answer 1"
    else:
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(response.id)


def stream_of(text: str) -> Any:
    return stream(delta(text), finish(), usage_event())


def test_tools_in_a_conversation(
    client: openai.OpenAI, gateway: Gateway, upstream: Upstream
) -> None:
    """A call that a response left in the conversation is answered by the next one."""
    lane = gateway.add_lane(upstream)
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    called = completion("")
    called["choices"][0]["message"] = {"role": "assistant", "content": None, "tool_calls": [call]}
    called["choices"][0]["finish_reason"] = "tool_calls"
    upstream.script(reply(called), reply(completion("done")))
    tools: Any = [{"type": "function", "name": "f", "parameters": {"type": "object"}}]
    made = client.conversations.create()
    asked: Any = {"model": f"{lane.prefix}/m", "tools": tools, "conversation": made.id}
    first = client.responses.create(input="go", **asked)
    assert first.output[0].type == "function_call"
    output: Any = {"type": "function_call_output", "call_id": "call_1", "output": "5"}
    assert client.responses.create(input=[output], **asked).output_text == "done"
    roles = [turn["role"] for turn in upstream.last.json()["messages"]]
    assert roles == ["user", "assistant", "tool"]
    kinds = [item.type for item in client.conversations.items.list(made.id, order="asc")]
    assert kinds == ["message", "function_call", "function_call_output", "message"]


def test_a_conversation_must_be_the_callers(
    client: openai.OpenAI, stranger: openai.OpenAI, gateway: Gateway, upstream: Upstream
) -> None:
    lane = gateway.add_lane(upstream)
    made = client.conversations.create()
    asked: Any = {"model": f"{lane.prefix}/m", "input": "x"}
    with pytest.raises(openai.NotFoundError, match="There is no conversation"):
        stranger.responses.create(conversation=made.id, **asked)
    with pytest.raises(openai.BadRequestError, match="exclude each other"):
        client.responses.create(conversation=made.id, previous_response_id="resp_1", **asked)
    with pytest.raises(openai.BadRequestError, match="must be the id of a conversation"):
        client.responses.create(conversation=5, **asked)  # type: ignore[arg-type]
    assert upstream.requests == []


def test_a_background_response_is_added(
    client: openai.OpenAI, gateway: Gateway, upstream: Upstream
) -> None:
    lane = gateway.add_lane(upstream)
    upstream.script(stream_of("later"))
    made = client.conversations.create()
    begun = client.responses.create(
        model=f"{lane.prefix}/m", input="now", conversation=made.id, background=True
    )
    assert begun.conversation is not None

    def look() -> Any:
        return client.responses.retrieve(begun.id).status == "completed"

    eventually(look, "the response is completed", within_s=20)
    assert texts(client.conversations.items.list(made.id, order="asc")) == ["now", "later"]


def test_conversations_of_a_deleted_key_are_deleted(gateway: Gateway) -> None:
    """With the next conversation that anybody creates."""
    key = gateway.create_key(name="short")
    with openai_client(gateway, key["key"]) as short:
        made = short.conversations.create(items=[message("secret")])
        gateway.admin.delete(f"/api/keys/{key['id']}")
        with pytest.raises(openai.AuthenticationError):
            short.conversations.retrieve(made.id)
