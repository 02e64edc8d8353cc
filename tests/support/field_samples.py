"""For every field of the records that an operator writes, a value that is not its default, sent over the management
API. `field_readers` watches what it changes in the snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel

from fairlead.gateway.combos.fields import ComboStep, Config, ModelStep, NewCombo
from fairlead.gateway.combos.rules import (
    ContextRequirements,
    JsonPathPredicate,
    ResponseValidation,
    ShadowRouting,
)
from fairlead.gateway.keys.access_fields import RateLimit
from fairlead.gateway.keys.fields import AccessSchedule, NewKey
from fairlead.gateway.models.fields import ModelFields
from fairlead.gateway.nodes.fields import NewNode
from fairlead.gateway.nodes.timeouts import Timeouts
from fairlead.gateway.providers.fields import AwsKeys, EntraApp, NewConnection, ProviderSpecific

CONNECTION_ID: Final = "{connection}"
"""Stands in a sample for the id of the connection that there is."""
GROUP_ID: Final = "{group}"
"""Stands in a sample for the id of the group that there is."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Bodies that are sent one after the other: the second changes only the field."""

    after: Any
    before: Any = None
    others: dict[str, Any] = field(default_factory=dict)
    """Fields that both bodies have beside it."""
    readers: tuple[str, ...] = ()
    """Files that read it where it is not for the relay; they are searched for its name."""
    outside: str | None = None
    """Why no snapshot has it."""


@dataclass(frozen=True, slots=True)
class RecordSamples:
    """A kind of record: its body, where it is made and changed, and the samples by field."""

    name: str
    body: type[BaseModel]
    samples: dict[str, Sample]
    nested: dict[str, type[BaseModel]] = field(default_factory=dict)
    """Members that are objects themselves, by the path of their field."""

    def paths(self) -> Iterator[str]:
        """Every field by its path in JSON; what is an object counts by its members."""
        yield from _paths(self.body, "", self.nested)


def _paths(
    model: type[BaseModel], prefix: str, nested: dict[str, type[BaseModel]]
) -> Iterator[str]:
    for name, info in model.model_fields.items():
        path = f"{prefix}{info.alias or name}"
        if path in nested:
            yield from _paths(nested[path], f"{path}.", nested)
        else:
            yield path


_PAGES: Final = "python/fairlead/dashboard/templates/{}.html"
_MODELS: Final = [{"model": "lab/m"}]
_STEPS: Final = [{"model": "lab/m"}, {"model": "lab/n"}]
_SHOWN: Final = "it is for people who read lists"
_SCHEDULE: Final = {"enabled": True, "from": "08:00", "until": "18:00", "days": [1], "tz": "UTC"}


def _schedule(name: str, value: Any) -> Sample:
    return Sample({"accessSchedule": _SCHEDULE | {name: value}}, {"accessSchedule": _SCHEDULE})


def _limited(name: str, value: Any) -> Sample:
    limited = {"usageLimitEnabled": True, "dailyUsageLimitUsd": 1}
    return Sample({name: value}, {name: None}, others=limited)


def _chaotic(name: str, after: Any) -> Sample:
    return Sample({name: after}, others={"chaosModeEnabled": True})


KEYS: Final = RecordSamples(
    "keys",
    NewKey,
    {
        "name": Sample({"name": "other"}),
        "isActive": Sample({"isActive": False}),
        "isBanned": Sample({"isBanned": True}),
        "expiresAt": Sample({"expiresAt": "2100-01-01T00:00:00Z"}),
        "groupId": Sample({"groupId": GROUP_ID}),
        "tags": Sample({"tags": ["x"]}),
        "modelAccessMode": Sample({"modelAccessMode": "restricted"}),
        "allowedModels": Sample(
            {"allowedModels": ["lab/m"]},
            {"allowedModels": []},
            others={"modelAccessMode": "restricted"},
        ),
        "blockedModels": Sample({"blockedModels": ["lab/m"]}),
        "allowedCombos": Sample({"allowedCombos": ["fast"]}),
        "connectionAccessMode": Sample(
            {"connectionAccessMode": "restricted", "allowedConnections": [CONNECTION_ID]},
            {"connectionAccessMode": "all", "allowedConnections": []},
        ),
        "allowedConnections": Sample(
            {"allowedConnections": [CONNECTION_ID, "6f1d3cf2-3b0e-4a39-8b1c-2a2a0f6b1d11"]},
            {"allowedConnections": [CONNECTION_ID]},
            others={"connectionAccessMode": "restricted"},
        ),
        "allowedProviderObjects": Sample({"allowedProviderObjects": ["vs_1"]}),
        "allowAutoCombos": Sample({"allowAutoCombos": False}),
        "catalogScope": Sample({"catalogScope": "combos"}),
        "forcedModel": Sample({"forcedModel": "lab/m"}),
        "noLog": Sample({"noLog": True}),
        "captureBodies": Sample({"captureBodies": True}),
        "autoResolve": Sample({"autoResolve": True}),
        "throttleDelayMs": Sample({"throttleDelayMs": 5}),
        "maxSessions": Sample({"maxSessions": 5}),
        "rateLimits.limit": Sample(
            {"rateLimits": [{"limit": 6, "window": 60}]},
            {"rateLimits": [{"limit": 5, "window": 60}]},
        ),
        "rateLimits.window": Sample(
            {"rateLimits": [{"limit": 5, "window": 61}]},
            {"rateLimits": [{"limit": 5, "window": 60}]},
        ),
        "accessSchedule.enabled": _schedule("enabled", False),
        "accessSchedule.from": _schedule("from", "09:00"),
        "accessSchedule.until": _schedule("until", "19:00"),
        "accessSchedule.days": _schedule("days", [2]),
        "accessSchedule.tz": _schedule("tz", "Europe/Vienna"),
        "scopes": Sample({"scopes": ["manage"]}),
        "allowedEndpoints": Sample({"allowedEndpoints": ["chat"]}),
        "streamDefaultMode": Sample({"streamDefaultMode": "json"}),
        "cacheDefaultMode": Sample({"cacheDefaultMode": "bypass"}),
        "compressionEnabled": Sample({"compressionEnabled": False}),
        "toolServiceMode": Sample({"toolServiceMode": "flex"}),
        "inexpressible": Sample({"inexpressible": "drop"}),
        "disableNonPublicModels": Sample({"disableNonPublicModels": True}),
        "allowUsageCommand": Sample({"allowUsageCommand": True}),
        "usageLimitEnabled": Sample(
            {"usageLimitEnabled": True},
            {"usageLimitEnabled": False},
            others={"dailyUsageLimitUsd": 1},
        ),
        "chaosModeEnabled": Sample({"chaosModeEnabled": True}),
        "chaosRate": _chaotic("chaosRate", 0.5),
        "chaosFaults": _chaotic("chaosFaults", ["error"]),
        "chaosLatencyMs": _chaotic("chaosLatencyMs", 7),
        "disabledGuardrails": Sample({"disabledGuardrails": ["pii-masker"]}),
        "ipAllowlist": Sample({"ipAllowlist": ["192.0.2.0/24"]}),
        "dailyUsageLimitUsd": _limited("dailyUsageLimitUsd", 2),
        "weeklyUsageLimitUsd": _limited("weeklyUsageLimitUsd", 2),
        "monthlyUsageLimitUsd": _limited("monthlyUsageLimitUsd", 2),
        "usageLimitTz": Sample(
            {"usageLimitTz": "Europe/Vienna"},
            {"usageLimitTz": "UTC"},
            others={"usageLimitEnabled": True, "dailyUsageLimitUsd": 1},
        ),
        "usageAlertPercents": Sample(
            {"usageAlertPercents": [1]},
            readers=("python/fairlead/records/budgets.py",),
            outside="control raises the event when usage is taken in",
        ),
        "unpricedModels": Sample({"unpricedModels": "refuse"}),
    },
    {"rateLimits": RateLimit, "accessSchedule": AccessSchedule},
)


def _specific(name: str, after: Any, **others: Any) -> Sample:
    return Sample(
        {"providerSpecificData": {name: after}}, {"providerSpecificData": {name: None}}, **others
    )


def _timeout(path: str, name: str) -> Sample:
    def body(value: Any) -> Any:
        inner: Any = {name: value}
        for part in reversed(path.split(".")):
            inner = {part: inner}
        return inner

    return Sample(body(777), body(None))


_TIMERS: Final = ("connectMs", "headerMs", "firstTokenMs", "idleMs", "answerMs")
_ADDRESS: Final = "python/fairlead/gateway/providers/endpoint.py"
_AZURE: Final = "python/fairlead/gateway/providers/endpoint.py"
_SOURCES: Final = "python/fairlead/gateway/cloud_credentials/sources.py"
_ENTRA: Final = "python/fairlead/gateway/cloud_credentials/entra.py"
_VARIABLES: Final = "python/fairlead/gateway/providers/apis.py"

CONNECTIONS: Final = RecordSamples(
    "connections",
    NewConnection,
    {
        "provider": Sample(None, outside="which record it is; it cannot be changed"),
        "name": Sample({"name": "other"}),
        "authType": Sample({"authType": "none"}, {"authType": "apikey", "apiKey": "sk-a"}),
        "apiKey": Sample({"apiKey": "sk-b"}, {"apiKey": "sk-a"}),
        "awsKeys.accessKeyId": Sample(None, readers=("rust/core/src/aws.rs",), outside="sealed"),
        "awsKeys.secretAccessKey": Sample(
            None, readers=("rust/core/src/aws.rs",), outside="sealed"
        ),
        "awsKeys.sessionToken": Sample(None, readers=("rust/core/src/aws.rs",), outside="sealed"),
        "serviceAccount": Sample(
            None, readers=("rust/engine/src/upstream/target.rs",), outside="sealed"
        ),
        **{
            f"entraApp.{name}": Sample(None, readers=(_ENTRA,), outside="sealed")
            for name in ("tenantId", "clientId", "clientSecret")
        },
        "displayName": Sample(
            {"displayName": "Shown"}, readers=(_PAGES.format("providers"),), outside=_SHOWN
        ),
        "priority": Sample({"priority": 7}),
        "weight": Sample({"weight": 7}),
        "isActive": Sample({"isActive": False}),
        "defaultModel": Sample({"defaultModel": "of-its-own"}),
        "maxConcurrent": Sample({"maxConcurrent": 7}),
        "requestsPerMinute": Sample({"requestsPerMinute": 7}),
        "tokensPerMinute": Sample({"tokensPerMinute": 7}),
        "minGapMs": Sample({"minGapMs": 7}),
        "queueDepth": Sample({"queueDepth": 7}, others={"maxConcurrent": 7}),
        "queueTimeoutMs": Sample(
            {"queueTimeoutMs": 7},
            {"queueTimeoutMs": None},
            others={"maxConcurrent": 7, "queueDepth": 7},
        ),
        "quotaWindowThresholds": Sample({"quotaWindowThresholds": {"5h": 25.0}}),
        "providerSpecificData.baseUrl": _specific("baseUrl", "http://127.0.0.1:8001/v1"),
        "providerSpecificData.reasoningControl": _specific("reasoningControl", "chat-template"),
        "providerSpecificData.learnLimits": _specific("learnLimits", after=False),
        "providerSpecificData.reasoningReplay": _specific("reasoningReplay", after=True),
        "providerSpecificData.inexpressible": _specific("inexpressible", after="drop"),
        "providerSpecificData.promptCache": _specific("promptCache", after="off"),
        "providerSpecificData.refuses": _specific("refuses", after=["seed"]),
        "providerSpecificData.facts": _specific("facts", after={"userMost": 7}),
        **{
            f"providerSpecificData.{name}": Sample(
                None, readers=(_VARIABLES,), outside="a part of the address of some providers"
            )
            for name in ("region", "project", "resource", "workspace", "account")
        },
        **{
            f"providerSpecificData.timeouts.{name}": _timeout("providerSpecificData.timeouts", name)
            for name in _TIMERS
        },
        **{
            f"providerSpecificData.{name}": Sample(
                None, readers=(_AZURE,), outside="only Azure's providers have it"
            )
            for name in ("apiVersion", "deployments")
        },
        **{
            f"providerSpecificData.{name}": Sample(
                None, readers=(_SOURCES,), outside="how control obtains a credential"
            )
            for name in ("awsProfile", "roleArn")
        },
        "providerSpecificData.prices": _specific("prices", {"m": {"input": 1.0}}),
    },
    {
        "awsKeys": AwsKeys,
        "entraApp": EntraApp,
        "providerSpecificData": ProviderSpecific,
        "providerSpecificData.timeouts": Timeouts,
    },
)

NODES: Final = RecordSamples(
    "nodes",
    NewNode,
    {
        "type": Sample({"type": "anthropic-compatible"}),
        "name": Sample({"name": "Other"}, readers=(_PAGES.format("providers"),), outside=_SHOWN),
        "prefix": Sample({"prefix": "other"}),
        "baseUrl": Sample({"baseUrl": "http://127.0.0.1:8002/v1"}),
        "apiType": Sample({"apiType": "responses"}),
        "chatPath": Sample({"chatPath": "/talk"}),
        "modelsPath": Sample(
            {"modelsPath": "/list"},
            readers=(_ADDRESS, "python/fairlead/gateway/providers/probe.py"),
            outside="control asks for the list of models",
        ),
        "iconUrl": Sample({"iconUrl": "https://example.com/a.png"}),
        "customHeaders": Sample({"customHeaders": {"x-lab": "1"}}),
        **{f"timeouts.{name}": _timeout("timeouts", name) for name in _TIMERS},
        "supportedEndpoints": Sample({"supportedEndpoints": ["chat"]}),
        "supportsVision": Sample({"supportsVision": True}),
        "capabilities": Sample({"capabilities": ["tools"]}),
        "refuses": Sample({"refuses": ["seed"]}),
        "facts": Sample({"facts": {"userMost": 7}}, {"facts": None}),
    },
    {"timeouts": Timeouts},
)

MODELS: Final = RecordSamples(
    "models",
    ModelFields,
    {
        "provider": Sample(None, outside="which record it is; it cannot be changed"),
        "modelId": Sample(None, outside="which record it is; it cannot be changed"),
        "modelName": Sample({"modelName": "Em"}),
        "isHidden": Sample({"isHidden": True}),
        "maxOutputTokenOverride": Sample({"maxOutputTokenOverride": 77}),
        "contextWindowOverride": Sample({"contextWindowOverride": 77_000}),
        "type": Sample({"type": "embedding"}),
        "supportedEndpoints": Sample({"supportedEndpoints": ["chat"]}),
        "supportsVision": Sample({"supportsVision": True}),
        "capabilities": Sample({"capabilities": ["tools"]}),
        "apiType": Sample({"apiType": "responses"}),
        "refuses": Sample({"refuses": ["seed"]}),
        "facts": Sample({"facts": {"userMost": 7}}, {"facts": None}),
    },
)


def _config(name: str, after: Any, strategy: str = "priority") -> Sample:
    return Sample(
        {"config": {name: after}}, {"config": {}}, others={"strategy": strategy, "models": _STEPS}
    )


def _inside(path: str, base: dict[str, Any], name: str, after: Any) -> Sample:
    return Sample({"config": {path: base | {name: after}}}, {"config": {path: base}})


def _step(base: dict[str, Any], name: str, after: Any, strategy: str = "priority") -> Sample:
    return Sample(
        {"models": [base | {name: after}]}, {"models": [base]}, others={"strategy": strategy}
    )


_CONTEXT: Final = {"minContextWindow": 5_000}
_PREDICATE: Final = {"path": "a", "condition": "equals", "value": 1}
_VALIDATION: Final = {"minContentLength": 1}
_SHADOW: Final = {"targets": ["lab/m"]}


def _predicate(name: str, after: Any) -> Sample:
    def body(predicate: dict[str, Any]) -> Any:
        return {"config": {"responseValidation": {"jsonPathPredicates": [predicate]}}}

    return Sample(body(_PREDICATE | {name: after}), body(_PREDICATE))


COMBOS: Final = RecordSamples(
    "combos",
    NewCombo,
    {
        "name": Sample({"name": "other"}),
        "description": Sample(
            {"description": "For lists."},
            readers=("python/fairlead/cli/commands/combos.py",),
            outside=_SHOWN,
        ),
        "strategy": Sample({"strategy": "random"}),
        "models.kind": Sample(
            {"models": ["combo/second"]}, {"models": _MODELS}, others={"strategy": "priority"}
        ),
        "models.model": _step({"model": "lab/m"}, "model", "lab/n"),
        "models.connectionId": _step({"model": "lab/m"}, "connectionId", CONNECTION_ID),
        "models.weight": _step({"model": "lab/m"}, "weight", 7),
        "models.label": Sample(
            {"models": [{"model": "lab/m", "label": "Seven"}]},
            {"models": _MODELS},
            readers=("python/fairlead/cli/commands/combos.py",),
            outside=_SHOWN,
        ),
        "models.prompt": _step({"model": "lab/m"}, "prompt", "Be brief.", "pipeline"),
        "models.comboName": Sample({"models": ["combo/second"]}, {"models": ["combo/third"]}),
        "config.stickyLimit": _config("stickyLimit", 7, "weighted"),
        "config.concurrencyPerModel": _config("concurrencyPerModel", 7, "fill-first"),
        "config.windows": _config("windows", ["session"], "reset-window"),
        "config.handoffThreshold": _config("handoffThreshold", 0.5, "context-relay"),
        "config.pack": _config("pack", "ship-fast", "auto"),
        "config.handoffModel": _config("handoffModel", "lab/m", "context-relay"),
        "config.maxMessagesForSummary": _config("maxMessagesForSummary", 7, "context-relay"),
        "config.maxRetries": _config("maxRetries", 7),
        "config.retryDelayMs": _config("retryDelayMs", 7),
        "config.judgeModel": _config("judgeModel", "lab/m", "fusion"),
        "config.minPanel": _config("minPanel", 7, "fusion"),
        "config.stragglerGraceMs": _config("stragglerGraceMs", 7, "fusion"),
        "config.panelTimeoutMs": _config("panelTimeoutMs", 7, "fusion"),
        "config.hedging": _config("hedging", after=True),
        "config.hedgeDelayMs": _config("hedgeDelayMs", 7),
        "config.targetTimeoutMs": _config("targetTimeoutMs", 7),
        "config.comboTimeoutMs": _config("comboTimeoutMs", 7),
        "config.maxSetRetries": _config("maxSetRetries", 7),
        "config.setRetryDelayMs": _config("setRetryDelayMs", 7),
        "config.cooldownWaitMs": _config("cooldownWaitMs", 7),
        "config.queueDepth": _config("queueDepth", 7),
        "config.queueTimeoutMs": _config("queueTimeoutMs", 7),
        "config.contextRequirements.minContextWindow": _inside(
            "contextRequirements", _CONTEXT, "minContextWindow", 6_000
        ),
        "config.contextRequirements.preferLargeContext": _inside(
            "contextRequirements", _CONTEXT, "preferLargeContext", after=True
        ),
        "config.contextRequirements.contextFilterMode": _inside(
            "contextRequirements", _CONTEXT, "contextFilterMode", "strict"
        ),
        "config.responseValidation.forbiddenSubstrings": _inside(
            "responseValidation", _VALIDATION, "forbiddenSubstrings", ["no"]
        ),
        "config.responseValidation.requiredSubstrings": _inside(
            "responseValidation", _VALIDATION, "requiredSubstrings", ["yes"]
        ),
        "config.responseValidation.minContentLength": _inside(
            "responseValidation", _VALIDATION, "minContentLength", 2
        ),
        "config.responseValidation.streams": _inside(
            "responseValidation", _VALIDATION, "streams", "pass"
        ),
        "config.responseValidation.jsonPathPredicates.path": _predicate("path", "b"),
        "config.responseValidation.jsonPathPredicates.condition": _predicate(
            "condition", "notEquals"
        ),
        "config.responseValidation.jsonPathPredicates.value": _predicate("value", 2),
        "config.shadowRouting.enabled": _inside("shadowRouting", _SHADOW, "enabled", after=False),
        "config.shadowRouting.targets": _inside("shadowRouting", _SHADOW, "targets", ["lab/n"]),
        "config.shadowRouting.sampleRate": _inside("shadowRouting", _SHADOW, "sampleRate", 0.5),
        "config.shadowRouting.maxTargets": _inside("shadowRouting", _SHADOW, "maxTargets", 2),
        "config.shadowRouting.timeoutMs": _inside("shadowRouting", _SHADOW, "timeoutMs", 777),
        "isActive": Sample({"isActive": False}),
        "systemMessage": Sample({"systemMessage": "Be kind."}),
        "toolFilterRegex": Sample({"toolFilterRegex": "^get_"}),
        "allowedProviders": Sample({"allowedProviders": ["lab"]}),
        "allowedModelFamilies": Sample({"allowedModelFamilies": ["gpt"]}),
        "contextLength": Sample({"contextLength": 5_000}),
        "contextCacheProtection": Sample({"contextCacheProtection": True}),
    },
    {
        "config": Config,
        "config.contextRequirements": ContextRequirements,
        "config.responseValidation": ResponseValidation,
        "config.responseValidation.jsonPathPredicates": JsonPathPredicate,
        "config.shadowRouting": ShadowRouting,
    },
)
STEPS: Final = (ModelStep, ComboStep)
"""The kinds of a combo's steps."""

RECORDS: Final = (KEYS, CONNECTIONS, NODES, MODELS, COMBOS)
