"""Translation of a call for an interaction into a call for a response."""

from __future__ import annotations

import json
from typing import Any

from fairlead.errors import InvalidRequest
from fairlead.gateway.google import bare_model
from fairlead.gateway.interactions.fields import (
    Generation,
    InteractionRequest,
    TextFormat,
    ToolChoice,
)

_CONTENTS = frozenset({"text", "image", "document", "audio", "video"})
_CHOICES = {"auto": "auto", "any": "required", "none": "none", "validated": "auto"}


def as_response(interaction: InteractionRequest) -> dict[str, Any]:
    """The body of `/v1/responses` for an interaction. `InvalidRequest` names a field that has no
    equivalent there.
    """
    body: dict[str, Any] = {
        "model": bare_model(interaction.model),
        "input": _input(interaction.input),
    }
    if interaction.system_instruction is not None:
        body["instructions"] = interaction.system_instruction
    if interaction.previous_interaction_id is not None:
        body["previous_response_id"] = interaction.previous_interaction_id
    if interaction.labels:
        body["metadata"] = interaction.labels
    if interaction.tools:
        body["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description or "",
                "parameters": tool.parameters or {"type": "object", "properties": {}},
                "strict": False,
            }
            for tool in interaction.tools
        ]
    if isinstance(interaction.response_format, TextFormat):
        body |= _format(interaction.response_format)
    return body | _generation(interaction.generation_config or Generation())


def _generation(generation: Generation) -> dict[str, Any]:
    reasoning = {
        "effort": generation.thinking_level,
        "summary": "auto" if generation.thinking_summaries == "auto" else None,
    }
    named = {
        "temperature": generation.temperature,
        "top_p": generation.top_p,
        "max_output_tokens": generation.max_output_tokens,
        "tool_choice": _choice(generation.tool_choice),
        "reasoning": {name: value for name, value in reasoning.items() if value} or None,
    }
    return {name: value for name, value in named.items() if value is not None}


def _choice(choice: str | ToolChoice | None) -> Any:
    if isinstance(choice, ToolChoice):
        if choice.allowed_tools.mode == "any":
            return {"type": "function", "name": choice.allowed_tools.tools[0]}
        return _CHOICES[choice.allowed_tools.mode]
    return None if choice is None else _CHOICES[choice]


def _format(text_format: TextFormat) -> dict[str, Any]:
    if text_format.json_schema is not None:
        form = {
            "type": "json_schema",
            "name": "answer",
            "schema": text_format.json_schema,
            "strict": False,
        }
    elif text_format.mime_type == "application/json":
        form = {"type": "json_object"}
    else:
        return {}
    return {"text": {"format": form}}


def _input(input_: str | dict[str, Any] | list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    if isinstance(input_, str):
        return input_
    contents = [input_] if isinstance(input_, dict) else input_
    if not contents:
        raise InvalidRequest("input must not be empty.", param="input")
    if all(each.get("type") in _CONTENTS for each in contents):
        paths = ["input"] if isinstance(input_, dict) else _paths("input", contents)
        return [_role_of("user", contents, paths)]
    items: list[dict[str, Any]] = []
    for path, step in zip(_paths("input", contents), contents, strict=True):
        items += _step(step, path)
    return items


def _step(step: dict[str, Any], path: str) -> list[dict[str, Any]]:
    match step.get("type"):
        case "user_input" | "model_output" as kind:
            contents = step.get("content")
            if not isinstance(contents, list) or not all(isinstance(one, dict) for one in contents):
                raise InvalidRequest(f"{path}.content must be a list of contents.", param=path)
            role = "user" if kind == "user_input" else "assistant"
            return [_role_of(role, contents, _paths(f"{path}.content", contents))]
        case "thought":
            # Reasoning that another provider returned means nothing to this one, so it is dropped.
            return []
        case "function_call":
            return [
                {
                    "type": "function_call",
                    "call_id": _text(step, "id", path),
                    "name": _text(step, "name", path),
                    "arguments": json.dumps(step.get("arguments") or {}),
                }
            ]
        case "function_result":
            result = step.get("result")
            output = result if isinstance(result, str) else json.dumps(result)
            call_id = _text(step, "call_id", path)
            return [{"type": "function_call_output", "call_id": call_id, "output": output}]
    raise InvalidRequest(
        f"{path}.type must be user_input, model_output, thought, function_call or "
        "function_result, or a content's: text, image or document.",
        param=f"{path}.type",
    )


def _role_of(role: str, contents: list[dict[str, Any]], paths: list[str]) -> dict[str, Any]:
    parts = [_part(role, one, path) for one, path in zip(contents, paths, strict=True)]
    return {"type": "message", "role": role, "content": parts}


def _part(role: str, content: dict[str, Any], path: str) -> dict[str, Any]:
    kind = content.get("type")
    if kind == "text":
        part_type = "input_text" if role == "user" else "output_text"
        return {"type": part_type, "text": _text(content, "text", path, empty=True)}
    if kind == "image" and role == "user":
        return {"type": "input_image", "image_url": _address(content, path)}
    if kind == "document" and role == "user":
        if isinstance(content.get("uri"), str):
            return {"type": "input_file", "file_url": content["uri"]}
        return {
            "type": "input_file",
            "filename": "document",
            "file_data": _address(content, path),
        }
    known = "text, image or document" if role == "user" else "text"
    raise InvalidRequest(f"{path}.type must be {known}.", param=f"{path}.type")


def _address(content: dict[str, Any], path: str) -> str:
    if isinstance(content.get("uri"), str):
        return str(content["uri"])
    data, kind = _text(content, "data", path), _text(content, "mime_type", path)
    return f"data:{kind};base64,{data}"


def _text(content: dict[str, Any], name: str, path: str, *, empty: bool = False) -> str:
    value = content.get(name)
    if not isinstance(value, str) or not (value or empty):
        raise InvalidRequest(f"{path}.{name} must be a text.", param=f"{path}.{name}")
    return value


def _paths(name: str, contents: list[dict[str, Any]]) -> list[str]:
    return [f"{name}[{number}]" for number in range(len(contents))]
