"""The fields of an API key that a caller may set: types, bounds, defaults, and the rules between
them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    Field,
    StrictBool,
    StrictInt,
)
from pydantic_core import PydanticCustomError

from fairlead import _core
from fairlead.calls.caller import MANAGING_SCOPES
from fairlead.errors import InvalidRequest
from fairlead.gateway.fields import Name, Spelled, Text
from fairlead.gateway.ip_filter.fields import NetworkText
from fairlead.gateway.keys.access_fields import (
    NO_CONTROLS,
    AccessFields,
    GroupId,
    Zone,
    check_access,
)
from fairlead.moment import Moment
from fairlead.wire import ChangeWire, Wire

EndpointCategory = Literal[
    "chat",
    "search",
    "embeddings",
    "images",
    "audio",
    "video",
    "music",
    "rerank",
    "models",
    "moderations",
    "ocr",
    "batches",
    "files",
    "web-fetch",
    "agents",
    "scraping",
    "management",
]
# Categories in which this gateway has no route: they would permit nothing.
EMPTY_CATEGORIES = frozenset({"agents"})
GuardrailName = Literal["pii-masker", "prompt-injection", "credential-masker"]
ENDPOINT_CATEGORIES: tuple[str, ...] = get_args(EndpointCategory)


def _distinct(days: list[int]) -> list[int]:
    if len(set(days)) != len(days):
        raise PydanticCustomError("days", "must name each day once")
    return days


ModelOrCombo = Annotated[Text, Field(min_length=1, max_length=300), NO_CONTROLS]
ObjectPattern = Annotated[Text, Field(min_length=1, max_length=300), NO_CONTROLS]
Scope = Annotated[
    Text,
    Field(min_length=1, max_length=64),
    Spelled(r"[a-z0-9][a-z0-9:._-]*", "must be small letters, digits and :._- after the first"),
]
ClockTime = Annotated[
    Text, Spelled(r"([01][0-9]|2[0-3]):[0-5][0-9]", "must be a time from 00:00 to 23:59")
]


class AccessSchedule(Wire):
    """When a key may be used: from `from` until `until` (past midnight if that is earlier) on
    `days` (0 is Sunday).
    """

    enabled: StrictBool
    from_: ClockTime = Field(alias="from")
    until: ClockTime
    days: Annotated[
        list[Annotated[StrictInt, Field(ge=0, le=6)]],
        Field(min_length=1, max_length=7),
        AfterValidator(_distinct),
    ]
    tz: Zone


# The narrow scopes, with what each opens.
KEY_SCOPES: dict[str, dict[str, Any]] = {each["scope"]: each for each in _core.key_scopes()}
_OF_PEOPLE = "the caches are for people who have signed in, and no key reads or clears them"
# Scopes that keys of other gateways have, and their replacements here.
WHY_NO_SCOPE: dict[str, str] = {
    "read:cache": _OF_PEOPLE,
    "write:cache": _OF_PEOPLE,
    "execute:completions": "any key may call models, and `allowedEndpoints` narrows that",
    "execute:search": "any key may search, and `allowedEndpoints` narrows that",
    "mcp:connect": "tool clients connect with separate access tokens, by signing in or as `flb_`",
    "policy:bypass-provider-quota": (
        "the `quotaWindowThresholds` of a connection hold for every key; lower them there"
    ),
}
ChaosFault = Literal["error", "overload", "rate-limit", "timeout", "latency"]
CHAOS_FAULTS: tuple[ChaosFault, ...] = get_args(ChaosFault)


def _once_each(faults: list[ChaosFault]) -> list[ChaosFault]:
    if len(set(faults)) != len(faults):
        raise PydanticCustomError("faults", "must name each fault once")
    return faults


class KeyFields(AccessFields):
    """Everything but the name."""

    is_active: StrictBool = True
    is_banned: StrictBool = False
    expires_at: Moment | None = None
    allowed_provider_objects: list[ObjectPattern] = Field(
        [],
        max_length=200,
        description="Ids of objects in the account at the provider that its requests may name: vector stores, "
        "containers, stored prompts, files and others. `*` stands for any text. Empty: only what the key itself "
        "stored here.",
    )
    allow_auto_combos: StrictBool = True
    catalog_scope: Literal["all", "combos", "models"] = "all"
    forced_model: ModelOrCombo | None = None
    no_log: StrictBool = False
    capture_bodies: StrictBool = Field(
        False,
        description="Whether what it asks and is answered is kept, masked and sealed, for "
        "`/api/usage/logs/{id}/body`; `noLog` goes before it.",
    )
    auto_resolve: StrictBool = False
    throttle_delay_ms: StrictInt = Field(0, ge=0, le=300_000)
    max_sessions: StrictInt = Field(0, ge=0, le=10_000, description="0 sets no limit.")
    access_schedule: AccessSchedule | None = None
    scopes: list[Scope] = Field(
        [],
        max_length=32,
        description="`manage` and `admin` open management; each other scope opens the routes that "
        "docs/reference/scopes.md names. An unknown one is refused.",
    )
    allowed_endpoints: list[EndpointCategory] = Field(
        [],
        max_length=20,
        description="Empty allows all. `scraping` is the scraping API, `management` what a scope "
        "opens. `agents` has no route and is refused.",
    )
    stream_default_mode: Literal["legacy", "json"] = "legacy"
    cache_default_mode: Literal["legacy", "bypass"] = "legacy"
    compression_enabled: StrictBool = Field(
        True,
        description="Whether the operator's pipeline shortens this key's conversations; the header "
        "`X-Gateway-Compression` takes precedence.",
    )
    tool_service_mode: Literal["inherit", "default", "priority", "flex"] = Field(
        "inherit",
        description="The service tier of its conversations, whatever the request says; `inherit` "
        "leaves it to the request. For providers of OpenAI's and Anthropic's dialects.",
    )
    inexpressible: Literal["refuse", "drop"] | None = Field(
        None,
        description="How its requests with members that the provider does not accept are handled, if "
        "leaving them out changes the answer: `refuse` answers 400, `drop` leaves them out and names them in "
        "`X-Gateway-Left-Out`. The header `X-Gateway-Inexpressible` takes precedence. Null: as its group says, else "
        "the connection.",
    )
    disable_non_public_models: StrictBool = False
    allow_usage_command: StrictBool = False
    usage_limit_enabled: StrictBool = False
    chaos_mode_enabled: StrictBool = Field(
        False,
        description="Whether some of its calls are given faults in place of answers, by chance; "
        "`X-Gateway-Chaos` and the usage record name each.",
    )
    chaos_rate: Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)] = Field(
        0.1, description="The share of calls that are given a fault."
    )
    chaos_faults: Annotated[
        list[ChaosFault], Field(min_length=1, max_length=5), AfterValidator(_once_each)
    ] = Field(
        list(CHAOS_FAULTS),
        description="Which, each as likely: `error` (502), `overload` (503) and `rate-limit` (429) "
        "with Retry-After, `timeout` (504, after the latency), `latency` (the answer, that much "
        "later).",
    )
    chaos_latency_ms: Annotated[StrictInt, Field(ge=1, le=120_000)] = Field(
        2_000, description="How long `timeout` and `latency` take."
    )
    disabled_guardrails: list[GuardrailName] = Field(
        [], max_length=3, description="Guardrails that are not run for this key."
    )
    ip_allowlist: list[NetworkText] = Field(
        [],
        max_length=500,
        description="Addresses and networks that the key may be used from; empty allows all.",
    )
    group_id: GroupId | None = Field(
        None,
        description="The group that it belongs to: the limits and rules of that group and the groups "
        "above it apply in addition to the key's.",
    )
    unpriced_models: Literal["allow", "refuse"] | None = Field(
        None,
        description="How calls to models without a price are handled while a limit in USD applies; "
        "null: as the settings say.",
    )


class NewKey(KeyFields):
    """The body that creates a key, and the settable part of a stored one."""

    name: Name

    def changed(self, change: KeyChange) -> Self:
        """This record with the fields that `change` contains."""
        return self.model_copy(update=change.sent())


class KeyChange(KeyFields, ChangeWire):
    """The body that changes a key: any of the fields, at least one."""

    name: Name = ""


def ineffective(key: KeyFields) -> list[str]:
    """The fields of a key's record that have no effect; members of lists follow a colon."""
    return [
        *(f"scopes:{scope}" for scope in key.scopes if not _is_known(scope)),
        *(f"allowedEndpoints:{each}" for each in key.allowed_endpoints if each in EMPTY_CATEGORIES),
    ]


def _is_known(scope: str) -> bool:
    return scope in MANAGING_SCOPES or scope in KEY_SCOPES


def _check_scopes(scopes: list[str], before: list[str]) -> None:
    unknown = [each for each in scopes if not _is_known(each) and each not in before]
    if unknown:
        reason = WHY_NO_SCOPE.get(unknown[0])
        why = "" if reason is None else f": {reason}"
        raise InvalidRequest(
            f"scopes: `{unknown[0]}` would open nothing{why}. Known are manage, admin, "
            f"{', '.join(KEY_SCOPES)}.",
            param="scopes",
        )


def check_rules(key: KeyFields, before: KeyFields | None = None) -> None:
    """Checks the rules between fields on the whole record; `InvalidRequest` names the field to
    change. Values that `before` has already may stay.
    """
    _check_scopes(key.scopes, [] if before is None else before.scopes)
    stored = [] if before is None else before.allowed_endpoints
    empty = [each for each in key.allowed_endpoints if each in EMPTY_CATEGORIES]
    if added := [each for each in empty if each not in stored]:
        raise InvalidRequest(
            f"allowedEndpoints: `{added[0]}` has no route in this gateway and would allow nothing; "
            "leave it out.",
            param="allowedEndpoints",
        )
    check_access(key)
    if key.access_schedule is not None and key.access_schedule.from_ == key.access_schedule.until:
        raise InvalidRequest(
            "accessSchedule.until must differ from accessSchedule.from; "
            "send accessSchedule null for no schedule.",
            param="accessSchedule.until",
        )
