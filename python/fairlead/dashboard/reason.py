"""Why a request failed, for the people who look at it: what happened, who said it, what to do, and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from fairlead import _core
from fairlead.dashboard.names import Names

Record = Mapping[str, Any]
_SUMMARIES: Final = {str(each["kind"]): str(each["summary"]) for each in _core.error_kinds()}
_OUTCOMES: Final = {
    "shed": "The gateway had too many requests open.",
    "drained": "The gateway was shutting down.",
    "client_gone": "The caller closed the connection before the answer was complete.",
}
# The target of a link.
_KEY, _CONNECTION, _HEALTH = "key", "connection", "health"


class _Advice(NamedTuple):
    """The advice for a kind of error, and the page where it is followed."""

    words: str
    place: str = ""


_CALLER: Final = "Change the request as the message says."
_LIMIT: Final = "Raise the limit of the key or its group, or wait until its window ends."
_CREDENTIAL: Final = (
    "Check the connection: its API key, its permissions and its balance at the provider."
)
_ADDRESS: Final = "Check the connection's base URL, and whether the gateway reaches that address."
_WAIT: Final = (
    "Send the request again after a while, or add another connection or a combo with a fallback."
)
_SLOW: Final = (
    "Raise the connection's timeout if its answers take that long, or add a fallback with a combo."
)
_BROKEN: Final = "If it happens again, give the provider's support its request id, or add a fallback with a combo."
_ADVICE: Final[Mapping[str, _Advice]] = {
    "invalid_request": _Advice(_CALLER),
    "unauthenticated": _Advice("Send a key that exists and is active.", "/dashboard/keys"),
    "forbidden": _Advice(
        "Give the key the permission that the message names, or use another key.", _KEY
    ),
    "not_found": _Advice("Check the path and the id in the request."),
    "model_not_found": _Advice(
        "Check the model's name, or add a connection that serves it.", "/dashboard/models"
    ),
    "method_not_allowed": _Advice("Use a method that the path has."),
    "upgrade_refused": _Advice("Send the request over HTTP: the path has no WebSocket."),
    "request_timeout": _Advice("Check the caller's network: its body did not arrive in time."),
    "context_length_exceeded": _Advice(
        "Send fewer tokens, choose a model with a larger window, or switch on compression.",
        "/dashboard/context",
    ),
    "guardrail_blocked": _Advice(
        "Change the text, or the guardrail's action.", "/dashboard/guardrails"
    ),
    "conflict": _Advice("Read the stored record again, and send the change once more."),
    "too_large": _Advice(
        "Send a smaller body, or raise the limit in the settings.", "/dashboard/settings"
    ),
    "uri_too_long": _Advice("Send a shorter address."),
    "unsupported_media_type": _Advice("Send the body as JSON, or as the route's page says."),
    "rate_limited": _Advice(_LIMIT, _KEY),
    "budget_exceeded": _Advice(_LIMIT, _KEY),
    "call_too_dear": _Advice("Raise the caller's own limit for a call, or ask for fewer tokens."),
    "token_limit_exceeded": _Advice(_LIMIT, _KEY),
    "accounts_busy": _Advice(
        "Raise the limits of the connection, or add another one.", "/dashboard/limits"
    ),
    "LEASE_CAPACITY_UNAVAILABLE": _Advice(
        "Add a connection, or wait until a session gives one back.", "/dashboard/providers"
    ),
    "LEASE_FENCE_STALE": _Advice("Let the session ask for a new lease."),
    "unpriced_model": _Advice(
        "Set a price for the model, or allow models without a price for this key.",
        "/dashboard/models",
    ),
    "headers_too_large": _Advice("Send fewer or shorter headers."),
    "client_gone": _Advice("Raise the caller's timeout if answers take longer than it waits."),
    "internal": _Advice("Read the gateway's log, and report the defect.", _HEALTH),
    "upstream_refused": _Advice(_ADDRESS, _CONNECTION),
    "upstream_reset": _Advice(_BROKEN, _CONNECTION),
    "upstream_invalid": _Advice(
        "Check that the connection's base URL and protocol are the provider's.", _CONNECTION
    ),
    "empty_answer": _Advice(
        "Check the request's limits on output, or add a fallback with a combo."
    ),
    "answer_rejected": _Advice(
        "Change the combo's rules for answers, or its targets.", "/dashboard/combos"
    ),
    "upstream_auth": _Advice(_CREDENTIAL, _CONNECTION),
    "upstream_status": _Advice(_BROKEN, _CONNECTION),
    "upstream_rate_limited": _Advice(_WAIT, _CONNECTION),
    "upstream_overloaded": _Advice(_WAIT, _CONNECTION),
    "upstream_timeout": _Advice(_SLOW, _CONNECTION),
    "upstream_first_token_timeout": _Advice(_SLOW, _CONNECTION),
    "upstream_idle_timeout": _Advice(_SLOW, _CONNECTION),
    "proxy_failed": _Advice(
        "Check the outbound proxy's address and credentials.", "/dashboard/settings"
    ),
    "no_route": _Advice(
        "Add or repair a connection of the model's provider.", "/dashboard/providers"
    ),
    "limits_unknown": _Advice("Check that the nodes reach their shared store.", _HEALTH),
    "overloaded": _Advice("Send fewer requests at once, or add workers.", _HEALTH),
    "draining": _Advice("Send the request again: another process takes it.", _HEALTH),
    "control_unavailable": _Advice("Wait until management has started again.", _HEALTH),
    "storage_unavailable": _Advice("Check the disk and the database.", _HEALTH),
}
_LINKS: Final = {
    "/dashboard/keys": "Keys",
    "/dashboard/models": "Models",
    "/dashboard/context": "Context",
    "/dashboard/guardrails": "Guardrails",
    "/dashboard/settings": "Settings",
    "/dashboard/limits": "Limits",
    "/dashboard/providers": "Providers",
    "/dashboard/combos": "Combos",
}


class Link(NamedTuple):
    """A page where the reason is dealt with."""

    href: str
    words: str


@dataclass(frozen=True, slots=True)
class ProviderReply:
    """A provider's answer to an attempt that failed."""

    who: str
    facts: tuple[tuple[str, str], ...]
    message: str | None


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a request failed."""

    message: str
    """The sentence that the caller received."""
    said_by: str
    kind: str
    advice: str
    links: tuple[Link, ...]
    replies: tuple[ProviderReply, ...]
    mood: str


def reason_of(row: Record, names: Names) -> Reason | None:
    """The reason of a row of the request log; None for a request that succeeded."""
    if row["outcome"] == "completed":
        return None
    kind = row["errorKind"] or ""
    advice = _ADVICE.get(kind, _Advice("Read the gateway's log.", _HEALTH))
    is_of_provider = row["outcome"] == "upstream_failed"
    replies = tuple(_reply(each, names) for each in row["failedAttempts"] if each["providerStatus"])
    return Reason(
        short_reason(row) or "No message was stored for this request.",
        "a failure at the provider" if is_of_provider else "a refusal by the gateway",
        kind,
        advice.words,
        _links(row, advice, names),
        replies,
        "bad" if is_of_provider or kind == "internal" else "warn",
    )


def short_reason(row: Record) -> str | None:
    """The sentence for a row of the list: what the caller received, or else what its kind means."""
    if row["outcome"] == "completed":
        return None
    kind = row["errorKind"] or ""
    return row["errorMessage"] or _SUMMARIES.get(kind) or _OUTCOMES.get(row["outcome"])


def kinds() -> list[tuple[str, str]]:
    """Every kind of error with its words, for a list to choose from."""
    return [(code, code.replace("_", " ").lower()) for code in _SUMMARIES]


def _reply(attempt: Record, names: Names) -> ProviderReply:
    facts = (
        ("Status", str(attempt["providerStatus"])),
        ("Code", attempt["providerCode"]),
        ("Type", attempt["providerType"]),
        ("Provider's request id", attempt["providerRequestId"]),
        ("Reason", attempt["rejectionReason"]),
        ("Member", attempt["rejectedMember"]),
    )
    who = names.connections.get(attempt["connectionId"], "a deleted connection")
    return ProviderReply(
        f"{who} ({attempt['model']})",
        tuple((name, value) for name, value in facts if value),
        attempt["providerMessage"],
    )


def _links(row: Record, advice: _Advice, names: Names) -> tuple[Link, ...]:
    if advice.place == _KEY:
        key_id = row["keyId"]
        if key_id is None or key_id not in names.keys:
            return ()
        group = (row["groupPath"] or "").split("/")[-1]
        above = (Link(f"/dashboard/groups/{group}", "Its group's limits"),) if group else ()
        return (Link(f"/dashboard/keys/{key_id}", f"Key {names.key(key_id)}"), *above)
    if advice.place == _CONNECTION:
        ids = dict.fromkeys(
            [each["connectionId"] for each in row["failedAttempts"]] + [row["connectionId"]]
        )
        known = [each for each in ids if each in names.connections]
        return tuple(
            Link(f"/dashboard/providers/{each}", f"Connection {names.connection(each)}")
            for each in known
        )
    if advice.place == _HEALTH:
        return (Link("/dashboard/health", "Health"),)
    return (Link(advice.place, _LINKS[advice.place]),) if advice.place else ()
