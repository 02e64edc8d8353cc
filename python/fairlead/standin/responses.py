"""The wire shapes of OpenAI's `/v1/responses`: one object, or numbered events."""

from collections.abc import Callable, Iterator
from typing import Any

from fairlead.standin.answer import CREATED_S, THOUGHT, Answer, identifier
from fairlead.standin.failure import FAULT_MESSAGE, InvalidRequest
from fairlead.standin.stream import Frames, event


def as_chat(body: dict[str, Any]) -> dict[str, Any]:
    """The request as a chat completion's body, which `answer_chat` reads. Raises `InvalidRequest`."""
    items = body.get("input")
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    if not isinstance(items, list) or not items:
        raise InvalidRequest("Missing required parameter: 'input'.", "input")
    if "messages" in body or "max_tokens" in body:
        raise InvalidRequest("Unknown parameter: 'messages' or 'max_tokens'.", "messages")
    messages = [message for item in items if (message := _message(item)) is not None]
    if body.get("instructions"):
        messages.insert(0, {"role": "system", "content": body["instructions"]})
    chat: dict[str, Any] = {"messages": messages}
    if (most := body.get("max_output_tokens")) is not None:
        chat["max_tokens"] = most
    if tools := body.get("tools"):
        chat["tools"] = [{"function": tool} for tool in tools if tool.get("type") == "function"]
    choice = body.get("tool_choice")
    if isinstance(choice, dict):
        chat["tool_choice"] = {"function": {"name": choice.get("name")}}
    elif choice:
        chat["tool_choice"] = choice
    wanted = (body.get("text") or {}).get("format") or {}
    if wanted.get("type") == "json_schema":
        chat["response_format"] = {"type": "json_schema", "json_schema": wanted}
    elif wanted:
        chat["response_format"] = wanted
    return chat


def thinks(body: dict[str, Any]) -> bool:
    """Whether the request asks for reasoning."""
    return (body.get("reasoning") or {}).get("effort") not in (None, "none")


def response(answer: Answer, body: dict[str, Any]) -> dict[str, Any]:
    """The unary answer."""
    status = "incomplete" if answer.finish_reason == "length" else "completed"
    return _envelope(answer, body, status) | {
        "output": [item for item, _ in _items(answer, body)],
        "usage": _usage(answer),
    }


def compaction(answer: Answer, body: dict[str, Any]) -> dict[str, Any]:
    """A conversation made shorter: what the user said, and one item for all that was answered."""
    input_ = body.get("input") or []
    items = [{"role": "user", "content": input_}] if isinstance(input_, str) else input_
    user_items = [
        {
            "type": "message",
            "id": f"msg_{at}",
            "status": "completed",
            "role": "user",
            "content": [{"type": "input_text", "text": item["content"]}]
            if isinstance(item["content"], str)
            else item["content"],
        }
        for at, item in enumerate(items)
        if item.get("role") == "user"
    ]
    sealed = {
        "id": f"cmp_{answer.id}",
        "type": "compaction",
        "encrypted_content": identifier("gAAAA", answer.id.encode()),
    }
    return {
        "id": f"resp_{answer.id}",
        "object": "response.compaction",
        "created_at": CREATED_S,
        "output": [*user_items, sealed],
        "usage": _usage(answer),
    }


def events(answer: Answer, body: dict[str, Any]) -> Frames:
    """The streamed answer."""
    numbers = iter(range(1_000_000_000))

    def numbered(name: str, /, **fields: Any) -> bytes:
        return event(name, **fields, sequence_number=next(numbers))

    opening = _envelope(answer, body, "in_progress")
    head = [
        numbered("response.created", response=opening),
        numbered("response.in_progress", response=opening),
    ]
    items = _items(answer, body)
    last = len(items) - 1
    final, empty = items[last]
    for index, (thought, opened) in enumerate(items[:last]):
        head += _reasoning_events(numbered, index, thought, opened)
    head.append(numbered("response.output_item.added", output_index=last, item=empty))
    place = {"item_id": final["id"], "output_index": last}
    inside = {**place, "content_index": 0}
    if not answer.tool_call:
        part = final["content"][0]
        head.append(numbered("response.content_part.added", **inside, part={**part, "text": ""}))

    def content() -> Iterator[bytes]:
        if call := answer.tool_call:
            for piece in call.pieces():
                yield numbered("response.function_call_arguments.delta", **place, delta=piece)
        for piece in answer.pieces():
            yield numbered("response.output_text.delta", **inside, delta=piece, logprobs=[])

    def tail() -> Iterator[bytes]:
        # Numbered when it is sent, after the content.
        if call := answer.tool_call:
            done = {"name": call.name, "arguments": call.arguments}
            yield numbered("response.function_call_arguments.done", **place, **done)
        else:
            part = final["content"][0]
            yield numbered("response.output_text.done", **inside, text=part["text"], logprobs=[])
            yield numbered("response.content_part.done", **inside, part=part)
        yield numbered("response.output_item.done", output_index=last, item=final)
        whole = response(answer, body)
        yield numbered(f"response.{whole['status']}", response=whole)

    failed = event("error", code="server_error", message=FAULT_MESSAGE)
    return Frames(head, content(), tail(), failed)


def _reasoning_events(
    numbered: Callable[..., bytes], index: int, thought: dict[str, Any], opened: dict[str, Any]
) -> list[bytes]:
    """The events of a whole item of reasoning."""
    place = {"item_id": thought["id"], "output_index": index, "summary_index": 0}
    part = thought["summary"][0]
    text = part["text"]
    summary = "response.reasoning_summary_"
    return [
        numbered("response.output_item.added", output_index=index, item=opened),
        numbered(f"{summary}part.added", **place, part={**part, "text": ""}),
        numbered(f"{summary}text.delta", **place, delta=text),
        numbered(f"{summary}text.done", **place, text=text),
        numbered(f"{summary}part.done", **place, part=part),
        numbered("response.output_item.done", output_index=index, item=thought),
    ]


def _message(item: Any) -> dict[str, Any] | None:
    if not isinstance(item, dict):
        raise InvalidRequest("Each entry of 'input' must be an object.", "input")
    match item.get("type", "message"):
        case "message":
            return {"role": item.get("role"), "content": item.get("content")}
        case "function_call_output":
            return {"role": "tool", "content": item.get("output")}
        case "function_call" | "reasoning" | "compaction":
            return None
        case kind:
            raise InvalidRequest(f"Invalid value: '{kind}'.", "input")


def _items(answer: Answer, body: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each item of the output, finished and as the stream opens it."""
    items: list[tuple[dict[str, Any], dict[str, Any]]] = []
    if thinks(body):
        thought: dict[str, Any] = {
            "id": f"rs_{answer.id}",
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": THOUGHT}],
        }
        if "reasoning.encrypted_content" in (body.get("include") or []):
            sealed = identifier("gAAAA", answer.id.encode())
            thought["encrypted_content"] = sealed
        items.append((thought, {"id": thought["id"], "type": "reasoning", "summary": []}))
    if call := answer.tool_call:
        whole = {
            "id": f"fc_{answer.id}",
            "type": "function_call",
            "status": "completed",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
        }
        items.append((whole, whole | {"status": "in_progress", "arguments": ""}))
    else:
        part = {"type": "output_text", "text": answer.text(), "annotations": [], "logprobs": []}
        message = {
            "id": f"msg_{answer.id}",
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [part],
        }
        items.append((message, message | {"status": "in_progress", "content": []}))
    return items


def _envelope(answer: Answer, body: dict[str, Any], status: str) -> dict[str, Any]:
    reason = {"reason": "max_output_tokens"} if status == "incomplete" else None
    return {
        "id": f"resp_{answer.id}",
        "object": "response",
        "created_at": CREATED_S,
        "status": status,
        "error": None,
        "incomplete_details": reason,
        "instructions": body.get("instructions"),
        "metadata": body.get("metadata") or {},
        "model": answer.model,
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": body.get("previous_response_id"),
        "store": body.get("store", True),
        "temperature": body.get("temperature", 1.0),
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools") or [],
        "top_p": body.get("top_p", 1.0),
        "usage": None,
    }


def _usage(answer: Answer) -> dict[str, Any] | None:
    if not answer.usage:
        return None
    return {
        "input_tokens": answer.usage["prompt_tokens"],
        "input_tokens_details": answer.usage["prompt_tokens_details"],
        "output_tokens": answer.usage["completion_tokens"],
        "output_tokens_details": answer.usage["completion_tokens_details"],
        "total_tokens": answer.usage["total_tokens"],
    }
