"""Converse of Amazon Bedrock: the service model's limits, and the order of turns."""

from __future__ import annotations

import re
from typing import Any, Final

from tests.support.referees.families import members_of
from tests.support.referees.refusal import amazon as refuse

MEMBERS: Final = members_of("converse")
BLOCKS: Final = members_of("converse blocks")
TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
TOOL_ID: Final = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
IMAGES: Final = ("png", "jpeg", "gif", "webp")
DOCUMENTS: Final = ("pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md")


def check(model: str, body: dict[str, Any]) -> None:
    """Raises `Refusal` for what Bedrock refuses."""
    for member in body.keys() - MEMBERS:
        raise refuse(f"{member}: Extra inputs are not permitted")
    _check_config(body.get("inferenceConfig") or {})
    for at, block in enumerate(body.get("system") or []):
        if "text" in block and not block["text"]:
            raise _constraint(f"system.{at}.text", "length greater than or equal to 1")
    messages = body.get("messages") or []
    if not messages or messages[0].get("role") != "user":
        raise refuse("A conversation must start with a user message. Try again.")
    for at, message in enumerate(messages):
        _check_message(message, f"messages.{at}")
    _check_tools(body)
    _check_pairs(messages)
    if re.search(r"nova|llama|deepseek|gpt-oss", model):
        for message in messages:
            for block in message["content"]:
                thought = block.get("reasoningContent") or {}
                if "redactedContent" in thought or thought.get("reasoningText", {}).get(
                    "signature"
                ):
                    raise refuse("reasoningContent is not supported for this model")


def _constraint(place: str, words: str) -> Exception:
    return refuse(
        f"1 validation error detected: Value at '{place}' failed to satisfy constraint: Member must"
        f" have {words}"
    )


def _check_config(config: dict[str, Any]) -> None:
    for member in config.keys() - {"maxTokens", "temperature", "topP", "stopSequences"}:
        raise refuse(f"inferenceConfig.{member}: Extra inputs are not permitted")
    if not 0 <= config.get("temperature", 0) <= 1:
        raise _constraint("inferenceConfig.temperature", "value less than or equal to 1")
    if not 0 <= config.get("topP", 0) <= 1:
        raise _constraint("inferenceConfig.topP", "value less than or equal to 1")
    if config.get("maxTokens", 1) < 1:
        raise _constraint("inferenceConfig.maxTokens", "value greater than or equal to 1")
    if any(not stop for stop in config.get("stopSequences") or []):
        raise _constraint("inferenceConfig.stopSequences", "length greater than or equal to 1")


def _check_message(message: dict[str, Any], where: str) -> None:
    if message.keys() != {"role", "content"} or message["role"] not in ("user", "assistant"):
        raise refuse(f"{where}: Member must satisfy enum value set: [user, assistant]")
    if not message["content"]:
        raise refuse(f"The content field in the Message object at {where} is empty.")
    for number, block in enumerate(message["content"]):
        place = f"{where}.content.{number}"
        if len(block) != 1 or not block.keys() <= BLOCKS:
            raise refuse(f"{place}: Invalid content block {sorted(block)}")
        if "text" in block and not block["text"].strip():
            raise refuse(
                f"The text field in the ContentBlock object at {place} is blank. Add text to the text"
                " field, and try again."
            )
        image, document = block.get("image"), block.get("document")
        if image and image.get("format") not in IMAGES:
            raise _constraint(f"{place}.image.format", "enum value set: [gif, jpeg, png, webp]")
        if document:
            name = document.get("name") or ""
            if not re.fullmatch(r"[a-zA-Z0-9 \-()\[\]]{1,200}", name) or "  " in name:
                raise refuse(f"{place}.document.name: the file name is not allowed")
            if document.get("format") not in DOCUMENTS:
                raise _constraint(f"{place}.document.format", "enum value set of documents")
    if any("document" in block for block in message["content"]) and not any(
        "text" in block for block in message["content"]
    ):
        raise refuse("A text block must be included when using documents.")


def _check_tools(body: dict[str, Any]) -> None:
    config = body.get("toolConfig")
    uses = {
        name
        for message in body["messages"]
        for block in message["content"]
        for name in block
        if name in ("toolUse", "toolResult")
    }
    if config is None:
        if uses:
            raise refuse(
                "The toolConfig field must be defined when using toolUse and toolResult content blocks."
            )
        return
    tools = config.get("tools") or []
    if not tools:
        raise _constraint("toolConfig.tools", "length greater than or equal to 1")
    for at, tool in enumerate(tools):
        spec = tool.get("toolSpec")
        if spec is None:
            continue
        if not TOOL_NAME.fullmatch(spec.get("name") or ""):
            raise _constraint(f"toolConfig.tools.{at}.toolSpec.name", "regular expression pattern")
        if spec.get("description") == "":
            raise _constraint(f"toolConfig.tools.{at}.toolSpec.description", "length of at least 1")
        if spec["inputSchema"]["json"].get("type") != "object":
            raise refuse(f"toolConfig.tools.{at}.toolSpec.inputSchema.json.type must be object")
    choice = config.get("toolChoice")
    if choice is not None and (len(choice) != 1 or not choice.keys() <= {"auto", "any", "tool"}):
        raise refuse("toolConfig.toolChoice: exactly one of auto, any, tool")


def _check_pairs(messages: list[dict[str, Any]]) -> None:
    for at, message in enumerate(messages):
        calls = [block["toolUse"] for block in message["content"] if "toolUse" in block]
        for call in calls:
            if not TOOL_ID.fullmatch(call["toolUseId"]):
                raise _constraint(f"messages.{at}.toolUse.toolUseId", "regular expression pattern")
            if not isinstance(call.get("input"), dict):
                raise refuse(f"messages.{at}.toolUse.input: must be an object")
        results = [
            block["toolResult"]["toolUseId"]
            for block in message["content"]
            if "toolResult" in block
        ]
        before = messages[at - 1]["content"] if at else []
        offered = [block["toolUse"]["toolUseId"] for block in before if "toolUse" in block]
        if sorted(results) != sorted(offered):
            raise refuse(
                "Expected toolResult blocks at messages"
                f".{at}.content for the following Ids: {', '.join(offered)}"
            )
        if at and messages[at - 1]["role"] == message["role"]:
            raise refuse("A conversation must alternate between user and assistant roles.")
    if any("toolUse" in block for block in messages[-1]["content"]):
        raise refuse("Expected toolResult blocks for the last toolUse blocks.")
