"""The closed list of webhook events, one catalogue per kind of webhook.

Packages raise an event with `fairlead.store.outbox.emit`, in the transaction of the change that it reports. A
delivery's body is `{"type", "timestamp", "data"}`, and `data` has the members listed here: a thin payload that
names the record, never a secret, a prompt or an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

Surface = Literal["gateway", "crawl", "service", "job"]
"""The kind of webhook: a subscription at `/api/webhooks`, the webhook of a crawl, of the generative service, or of
a job of that service.
"""

SURFACES: tuple[str, ...] = get_args(Surface)

EVERY: Final = "*"
"""Subscribes to every event of a surface, those of later versions too."""


@dataclass(frozen=True, slots=True)
class EventType:
    """An event. `data` maps each member of the payload to its description."""

    name: str
    summary: str
    data: Mapping[str, str]


_CHANGED = "names of the fields that were sent"
_KEY = {"id": "the key's id", "name": "its name"}
_GROUP = {"id": "the group's id", "name": "its name"}
_CONNECTION = {
    "id": "the connection's id",
    "name": "its name",
    "provider": "catalogue id or node id",
}
_NODE = {"id": "the node's id", "name": "its name", "prefix": "its prefix"}
_REQUEST = {
    "requestId": "as in `X-Gateway-Request-Id`",
    "timestamp": "when the request was admitted",
    "keyId": "the caller's key, or null",
    "endpoint": "endpoint category",
    "model": "as the caller named it, or null",
    "provider": "who served it, or null",
    "connectionId": "over which connection, or null",
    "status": "HTTP status that the caller got",
    "outcome": "as in the request log",
    "errorKind": "kind of the error, or null",
    "errorMessage": "the message that the caller received, masked, or null",
    "failedAttempts": "the attempts that failed, as in `/api/usage/request-logs`, with the provider's status, code, "
    "type, message and request id",
    "tokensInput": "from the provider's usage",
    "tokensOutput": "from the provider's usage",
    "costUsdMicros": "integer micro-dollars",
    "latencyMs": "admission to last byte",
}

_BEGUN = {"url": "where it begins", "status": "its status"}
_PAGE = {
    "url": "the page's address",
    "status": "`completed` or `failed`",
    "title": "of a page that was read",
    "statusCode": "of a page that was read",
    "error": "why a page was not read",
}
_ENDED = {
    "url": "where it began",
    "status": "its last status",
    "total": "pages",
    "completed": "pages that were read",
    "failed": "pages that were not",
    "error": "why, if it failed",
}


_PING = EventType("test.ping", "Somebody asked for a test.", {"message": "a greeting"})
_BATCH = {"id": "the batch's id"}
_INTERACTION = {"id": "the interaction's id"}
_FAULT = {"error_code": "what went wrong, as a code", "error_message": "in words"}
_BUDGET = {
    "scope": "`key` or `group`",
    "id": "the key's or the group's id",
    "name": "its name",
    "field": "the limit, by its field in the record",
    "spentUsdMicros": "spent in this window",
    "unpricedRequests": "requests of this window without a price, which the sum leaves out",
    "limitUsdMicros": "the limit",
    "startsAt": "when the window began",
    "resetsAt": "when it ends",
}
_SERVICE = (
    EventType(
        "batch.succeeded",
        "A batch is done.",
        {**_BATCH, "output_file_uri": "where its output is read, of a batch that has one"},
    ),
    EventType("batch.cancelled", "A batch was cancelled.", _BATCH),
    EventType("batch.expired", "A batch ran out of time.", _BATCH),
    EventType("batch.failed", "A batch failed.", {**_BATCH, **_FAULT}),
    EventType("interaction.requires_action", "An interaction waits for its caller.", _INTERACTION),
    EventType("interaction.completed", "An interaction is done.", _INTERACTION),
    EventType("interaction.failed", "An interaction failed.", {**_INTERACTION, **_FAULT}),
    EventType("interaction.cancelled", "An interaction was cancelled.", _INTERACTION),
    EventType(
        "video.generated",
        "A video is ready.",
        {
            "id": "the operation's id",
            "output_file_uri": "where the video is read",
            "file_name": "its file's name",
            "video_uri": "as `output_file_uri`, for older listeners",
        },
    ),
)
# The events that a webhook of the generative service may subscribe to.
SERVICE_EVENTS: Final = tuple(each.name for each in _SERVICE)


def _table(*types: EventType) -> Mapping[str, EventType]:
    return {each.name: each for each in types}


CATALOGUE: Final[Mapping[Surface, Mapping[str, EventType]]] = {
    "gateway": _table(
        EventType("key.created", "An API key was made.", _KEY),
        EventType("key.updated", "An API key was changed.", {**_KEY, "changed": _CHANGED}),
        EventType("key.deleted", "An API key was revoked.", _KEY),
        EventType("group.created", "A group of keys was made.", _GROUP),
        EventType("group.updated", "A group of keys was changed.", {**_GROUP, "changed": _CHANGED}),
        EventType("group.deleted", "A group of keys was deleted.", _GROUP),
        EventType("provider.created", "A provider connection was made.", _CONNECTION),
        EventType(
            "provider.updated",
            "A provider connection was changed.",
            {**_CONNECTION, "changed": _CHANGED},
        ),
        EventType("provider.deleted", "A provider connection was deleted.", _CONNECTION),
        EventType(
            "provider.tested",
            "A provider connection was tested, and the finding kept.",
            {
                **_CONNECTION,
                "valid": "whether it can be used",
                "diagnosis": "what was found",
                "statusCode": "of the provider's answer, or null",
                "latencyMs": "how long it took",
            },
        ),
        EventType(
            "provider.error",
            "A provider connection began to fail in traffic.",
            {**_CONNECTION, "errorKind": "kind of the error"},
        ),
        EventType(
            "provider.expired",
            "A sign-in at a provider has ended: somebody must sign in again.",
            {**_CONNECTION, "reason": "the token service's word for it"},
        ),
        EventType("provider.recovered", "A connection that failed serves again.", _CONNECTION),
        EventType(
            "quota.exceeded",
            "A connection's quota is used up, or a key met one of its limits (once an hour for each).",
            {
                "scope": "`connection` or `key`",
                "id": "the connection's or the key's id",
                "name": "its name, or null",
                "provider": "of a connection",
                "reason": "`quota-exhausted`, `policy-blocked`, or the kind of the refusal",
                "resetsAt": "when a connection's window is full again, or null",
            },
        ),
        EventType(
            "budget.reached",
            "A key or a group has spent one of the alert percentages of a limit in USD (once in each window).",
            {**_BUDGET, "percent": "which of its `usageAlertPercents`"},
        ),
        EventType(
            "budget.forecast",
            "A key or a group is on course to exceed its limit in USD before the month ends (once a month).",
            {**_BUDGET, "projectedUsdMicros": "what the month would come to"},
        ),
        EventType(
            "combo.switched",
            "A combo's answer came from another target than the first that was tried.",
            {
                "requestId": "as in `X-Gateway-Request-Id`",
                "timestamp": "when the request was admitted",
                "keyId": "the caller's key, or null",
                "combo": "the combo's name",
                "strategy": "its strategy",
                "model": "that served, as its provider knows it",
                "provider": "who served it",
                "connectionId": "over which connection",
                "attempts": "calls of providers that were made",
            },
        ),
        EventType("node.created", "A provider node was made.", _NODE),
        EventType("node.updated", "A provider node was changed.", {**_NODE, "changed": _CHANGED}),
        EventType("node.deleted", "A provider node was deleted.", _NODE),
        EventType(
            "settings.updated",
            "Settings were changed.",
            {"settingsRevision": "the new revision", "changed": _CHANGED},
        ),
        EventType(
            "backup.created",
            "A scheduled backup of the state was made.",
            {"id": "the backup's id", "sizeBytes": "of its file"},
        ),
        EventType(
            "backup.failed",
            "A scheduled backup could not be made; it is tried again.",
            {"errorKind": "kind of the error"},
        ),
        EventType("request.completed", "A model call was answered in full.", _REQUEST),
        EventType("request.failed", "A model call ended in any other way.", _REQUEST),
        EventType(
            "webhook.disabled",
            "A webhook was disabled because its listener is gone or failed too long.",
            {"id": "the webhook's id", "host": "its listener's host", "reason": "why"},
        ),
        _PING,
    ),
    "crawl": _table(
        EventType("crawl.started", "The crawl began.", {"crawlId": "the crawl's id", **_BEGUN}),
        EventType("crawl.page", "A page was read, or not.", {"crawlId": "the crawl's id", **_PAGE}),
        EventType("crawl.completed", "The crawl is done.", {"crawlId": "the crawl's id", **_ENDED}),
        EventType("crawl.failed", "It came to nothing.", {"crawlId": "the crawl's id", **_ENDED}),
        EventType("crawl.cancelled", "Somebody ended it.", {"crawlId": "the crawl's id", **_ENDED}),
        EventType("batch_scrape.started", "The batch began.", {"batchId": "its id", **_BEGUN}),
        EventType("batch_scrape.page", "A page was read, or not.", {"batchId": "its id", **_PAGE}),
        EventType("batch_scrape.completed", "The batch is done.", {"batchId": "its id", **_ENDED}),
        EventType("batch_scrape.failed", "It came to nothing.", {"batchId": "its id", **_ENDED}),
        EventType("batch_scrape.cancelled", "It was ended.", {"batchId": "its id", **_ENDED}),
        _PING,
    ),
    "service": _table(*_SERVICE, _PING),
    "job": _table(*_SERVICE),
}
