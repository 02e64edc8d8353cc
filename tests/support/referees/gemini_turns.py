"""Gemini's turns: roles, parts, their order, ids and signatures of calls."""

from __future__ import annotations

from typing import Any, Final

from tests.support.referees.families import members_of
from tests.support.referees.ledger import Ledger
from tests.support.referees.refusal import google as refuse

VENDOR: Final = "gemini"
# Texts that Gemini accepts in place of a signature of another vendor's call.
SKIPS: Final = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
PART: Final = members_of("gemini part")
DATA: Final = (
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
)
CALL: Final = {"id", "name", "args", "partialArgs", "willContinue"}
RESPONSE: Final = {"id", "name", "response", "parts", "willContinue", "scheduling"}


def check(body: dict[str, Any], family: dict[str, Any], ledger: Ledger) -> None:
    contents = body.get("contents")
    if not isinstance(contents, list) or not contents:
        raise refuse("GenerateContentRequest.contents: contents is not specified")
    for at, content in enumerate(contents):
        where = f"contents[{at}]"
        for member in content.keys() - {"role", "parts"}:
            raise refuse(
                f"Invalid JSON payload received. Unknown name \"{member}\" at '{where}': Cannot find"
                " field."
            )
        if content.get("role") not in ("user", "model", "function", None):
            raise refuse("Please use a valid role: user, model.")
        if not content.get("parts"):
            raise refuse(f"{where}.parts: contents.parts must not be empty.")
        for number, part in enumerate(content["parts"]):
            _check_part(part, f"{where}.parts[{number}]", family)
    for part in (body.get("systemInstruction") or {}).get("parts") or []:
        _check_part(part, "system_instruction", family)
    _check_order(contents)
    if family["signatures"] == "required":
        _check_signatures(contents, ledger)


def _check_part(part: dict[str, Any], where: str, family: dict[str, Any]) -> None:
    for member in part.keys() - PART:
        raise refuse(
            f"Invalid JSON payload received. Unknown name \"{member}\" at '{where}': Cannot find"
            " field."
        )
    data = [name for name in DATA if name in part]
    if len(data) != 1 and not (part.get("thought") and not data):
        raise refuse(f"{where}.data: required oneof field 'data' must have one initialized field")
    for name, known in (("functionCall", CALL), ("functionResponse", RESPONSE)):
        inner = part.get(name) or {}
        unknown = inner.keys() - known | (set() if family["call_ids"] else inner.keys() & {"id"})
        for member in unknown:
            raise refuse(
                f"Invalid JSON payload received. Unknown name \"{member}\" at '{where}': Cannot find"
                " field."
            )
        for member in ("args", "response"):
            if member in inner and not isinstance(inner[member], dict):
                raise refuse(f"Invalid value at '{where}.{member}' (type.googleapis.com/Struct)")
    if "functionResponse" in part and not part["functionResponse"].get("name"):
        raise refuse(f"{where}.function_response.name: Name cannot be empty.")
    if "inlineData" in part and not part["inlineData"].get("mimeType"):
        raise refuse(f"{where}.inline_data.mime_type: must not be empty")


def _count(content: dict[str, Any], name: str) -> int:
    return sum(1 for part in content["parts"] if name in part)


def _check_order(contents: list[dict[str, Any]]) -> None:
    if _count(contents[0], "functionCall") or contents[0].get("role") == "model":
        raise refuse(
            "Please ensure that function call turn comes immediately after a user turn or after a"
            " function response turn."
        )
    for at, content in enumerate(contents):
        calls, responses = _count(content, "functionCall"), _count(content, "functionResponse")
        before = contents[at - 1] if at else {"parts": []}
        if calls and before.get("role") == "model":
            raise refuse(
                "Please ensure that function call turn comes immediately after a user turn or after a"
                " function response turn."
            )
        following = contents[at + 1] if at + 1 < len(contents) else {"parts": []}
        if calls and _count(following, "functionResponse") != calls:
            raise refuse(
                "Please ensure that the number of function response parts is equal to the number of"
                " function call parts of the function call turn."
            )
        if responses and not _count(before, "functionCall"):
            raise refuse(
                "Please ensure that function response turn comes immediately after a function call"
                " turn."
            )


def _check_signatures(contents: list[dict[str, Any]], ledger: Ledger) -> None:
    """The first call of every step of the current turn is signed; every signature is Google's own."""
    spoken = [
        at
        for at, content in enumerate(contents)
        if content.get("role") == "user" and not _count(content, "functionResponse")
    ]
    current = spoken[-1] if spoken else 0
    for at, content in enumerate(contents):
        calls = [part for part in content["parts"] if "functionCall" in part]
        if at > current and calls and not calls[0].get("thoughtSignature"):
            raise refuse("Function call is missing a thought_signature in functionCall parts.")
        for part in content["parts"]:
            signature = part.get("thoughtSignature")
            if signature and signature not in SKIPS and not ledger.has_issued(VENDOR, signature):
                raise refuse("Corrupted thought signature.")
