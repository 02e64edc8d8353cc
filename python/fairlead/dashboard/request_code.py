"""A request as code that makes it: curl, and the official clients in Python and JavaScript.

The key is taken from the environment variable `FAIRLEAD_API_KEY`, so that code can be shared.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from fairlead.dashboard.dialect_request import DialectRequest

KEY: Final = "FAIRLEAD_API_KEY"


@dataclass(frozen=True, slots=True)
class Code:
    """One way to make a request: `name` for people, `id` for addresses."""

    id: str
    name: str
    text: str


def all_code(origin: str, request: DialectRequest) -> tuple[Code, ...]:
    """Every way; `origin` is the gateway's address as the visitor knows it."""
    return (
        Code("curl", "curl", curl(origin, request)),
        Code("python", "Python", python(origin, request)),
        Code("javascript", "JavaScript", javascript(origin, request)),
    )


def curl(origin: str, request: DialectRequest) -> str:
    """A command line for a POSIX shell."""
    body = json.dumps(request.body, ensure_ascii=False, indent=2)
    headers = {
        "openai": [f"authorization: Bearer ${KEY}"],
        "responses": [f"authorization: Bearer ${KEY}"],
        "anthropic": [f"x-api-key: ${KEY}", "anthropic-version: 2023-06-01"],
        "gemini": [f"x-goog-api-key: ${KEY}"],
    }[request.dialect]
    lines = [f"curl -N {shlex.quote(origin + request.path)}"]
    lines += [f'-H "{header}"' for header in headers]
    lines += ["-H 'content-type: application/json'", f"-d {shlex.quote(body)}"]
    return " \\\n  ".join(lines)


def python(origin: str, request: DialectRequest) -> str:
    """A program for the official Python client of the dialect."""
    return _PYTHON[request.dialect](origin, request)


def javascript(origin: str, request: DialectRequest) -> str:
    """A module for the official JavaScript client of the dialect."""
    return _JAVASCRIPT[request.dialect](origin, request)


def _is_streamed(request: DialectRequest) -> bool:
    return bool(request.body.get("stream")) or "streamGenerateContent" in request.path


def _arguments(fields: Mapping[str, Any], indent: str = "    ") -> str:
    return "".join(f"{indent}{name}={value!r},\n" for name, value in fields.items())


def _python_program(imports: str, client: str, call: str, arguments: str, shown: str) -> str:
    return f"import os\n\n{imports}\n\nclient = {client}\nanswer = {call}(\n{arguments})\n{shown}\n"


def _python_openai(origin: str, request: DialectRequest) -> str:
    is_chat = request.dialect == "openai"
    client = f'OpenAI(base_url={origin + "/v1"!r}, api_key=os.environ["{KEY}"])'
    call = "client.chat.completions.create" if is_chat else "client.responses.create"
    if not _is_streamed(request):
        shown = "choices[0].message.content" if is_chat else "output_text"
        shown = f"print(answer.{shown})"
    elif is_chat:
        shown = (
            "for chunk in answer:\n    for choice in chunk.choices:\n"
            '        print(choice.delta.content or "", end="", flush=True)'
        )
    else:
        shown = (
            'for event in answer:\n    if event.type == "response.output_text.delta":\n'
            '        print(event.delta, end="", flush=True)'
        )
    return _python_program(
        "from openai import OpenAI", client, call, _arguments(request.body), shown
    )


def _python_anthropic(origin: str, request: DialectRequest) -> str:
    client = f'Anthropic(base_url={origin!r}, api_key=os.environ["{KEY}"])'
    shown = 'print("".join(part.text for part in answer.content if part.type == "text"))'
    if _is_streamed(request):
        shown = (
            'for event in answer:\n    if event.type == "content_block_delta" and '
            'event.delta.type == "text_delta":\n'
            '        print(event.delta.text, end="", flush=True)'
        )
    fields = dict(request.body)
    if "temperature" in fields:
        # Newer clients have no argument for it.
        fields["extra_body"] = {"temperature": fields.pop("temperature")}
    imports = "from anthropic import Anthropic"
    call = "client.messages.create"
    return _python_program(imports, client, call, _arguments(fields), shown)


def _python_gemini(origin: str, request: DialectRequest) -> str:
    client = f'genai.Client(api_key=os.environ["{KEY}"], http_options={{"base_url": {origin!r}}})'
    is_streamed = _is_streamed(request)
    call = "client.models.generate_content" + ("_stream" if is_streamed else "")
    shown = "print(answer.text)"
    if is_streamed:
        shown = 'for chunk in answer:\n    print(chunk.text or "", end="", flush=True)'
    fields = {"model": _gemini_model(request), "contents": request.body["contents"]}
    if config := _gemini_config(request, "system_instruction", "max_output_tokens"):
        fields["config"] = config
    return _python_program("from google import genai", client, call, _arguments(fields), shown)


def _gemini_model(request: DialectRequest) -> str:
    return unquote(request.path.removeprefix("/v1beta/models/").rpartition(":")[0])


def _gemini_config(request: DialectRequest, system: str, tokens: str) -> dict[str, Any]:
    settings = dict(request.body.get("generationConfig") or {})
    config: dict[str, Any] = {}
    if instruction := request.body.get("systemInstruction"):
        config[system] = instruction["parts"][0]["text"]
    if "maxOutputTokens" in settings:
        config[tokens] = settings["maxOutputTokens"]
    if "temperature" in settings:
        config["temperature"] = settings["temperature"]
    return config


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _javascript_module(imports: str, client: str, call: str, value: Any, shown: str) -> str:
    return (
        f"{imports}\n\nconst client = {client};\nconst answer = await {call}({_json(value)});\n"
        f"{shown}\n"
    )


def _javascript_openai(origin: str, request: DialectRequest) -> str:
    is_chat = request.dialect == "openai"
    client = f"new OpenAI({{ baseURL: {_json(origin + '/v1')}, apiKey: process.env.{KEY} }})"
    call = "client.chat.completions.create" if is_chat else "client.responses.create"
    if not _is_streamed(request):
        shown = "choices[0].message.content" if is_chat else "output_text"
        shown = f"console.log(answer.{shown});"
    elif is_chat:
        shown = (
            "for await (const chunk of answer) "
            'process.stdout.write(chunk.choices[0]?.delta?.content ?? "");'
        )
    else:
        shown = (
            "for await (const event of answer) {\n"
            '  if (event.type === "response.output_text.delta") process.stdout.write(event.delta);\n}'
        )
    return _javascript_module('import OpenAI from "openai";', client, call, request.body, shown)


def _javascript_anthropic(origin: str, request: DialectRequest) -> str:
    client = f"new Anthropic({{ baseURL: {_json(origin)}, apiKey: process.env.{KEY} }})"
    shown = 'console.log(answer.content.map((part) => part.text ?? "").join(""));'
    if _is_streamed(request):
        shown = (
            "for await (const event of answer) {\n"
            '  if (event.type === "content_block_delta") process.stdout.write(event.delta.text ?? "");\n}'
        )
    imports = 'import Anthropic from "@anthropic-ai/sdk";'
    return _javascript_module(imports, client, "client.messages.create", request.body, shown)


def _javascript_gemini(origin: str, request: DialectRequest) -> str:
    client = (
        f"new GoogleGenAI({{ apiKey: process.env.{KEY}, "
        f"httpOptions: {{ baseUrl: {_json(origin)} }} }})"
    )
    is_streamed = _is_streamed(request)
    call = "client.models.generateContent" + ("Stream" if is_streamed else "")
    shown = "console.log(answer.text);"
    if is_streamed:
        shown = 'for await (const chunk of answer) process.stdout.write(chunk.text ?? "");'
    fields = {"model": _gemini_model(request), "contents": request.body["contents"]}
    if config := _gemini_config(request, "systemInstruction", "maxOutputTokens"):
        fields["config"] = config
    imports = 'import { GoogleGenAI } from "@google/genai";'
    return _javascript_module(imports, client, call, fields, shown)


_PYTHON: Final = {
    "openai": _python_openai,
    "responses": _python_openai,
    "anthropic": _python_anthropic,
    "gemini": _python_gemini,
}
_JAVASCRIPT: Final = {
    "openai": _javascript_openai,
    "responses": _javascript_openai,
    "anthropic": _javascript_anthropic,
    "gemini": _javascript_gemini,
}
