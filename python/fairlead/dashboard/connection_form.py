"""The forms of a connection: a new one, a change, and the key for its usage."""

from __future__ import annotations

from typing import Final

from fairlead.dashboard.form import Field, Group
from fairlead.dashboard.key_fields import inexpressible
from fairlead.dashboard.provider_facts import ON_YOUR_MACHINE, address_parts, needs_address

_NAME: Final = Field("name", "Name", most=200, is_required=True, example="main account")
_KEY: Final = Field("apiKey", "API key", "secret", "Sealed, and never shown again.")
DEPLOYMENTS: Final = "providerSpecificData.deployments"
_ADDRESS: Final = (
    *(
        Field(f"providerSpecificData.{name}", label, hint=hint, example=example)
        for name, label, hint, example in (
            ("baseUrl", "Base URL", "Instead of the provider's own.", "https://..."),
            ("region", "Region", "For clouds: a part of the address.", "us-east-1"),
            ("project", "Project", "For Google.", ""),
            ("resource", "Resource", "For Azure.", ""),
            ("workspace", "Workspace", "For Databricks.", ""),
            ("account", "Account", "For Cloudflare and Snowflake.", ""),
            (
                "apiVersion",
                "API version",
                "For Azure. Empty: the API without versions.",
                "2024-10-21",
            ),
        )
    ),
    Field(
        DEPLOYMENTS,
        "Deployments",
        "pairs",
        "For Azure: one `model = deployment` in a line. Empty: deployments have their models' names.",
        example="gpt-4o = chat-eu",
    ),
)


def _obtained(*options: tuple[str, str]) -> Field:
    """The choice of a credential that the gateway obtains from the machine it runs on."""
    return Field(
        "authType",
        "Credential of the machine",
        "choice",
        "The gateway obtains it and renews it; leave the key empty.",
        options=(("", "None"), *options),
    )


_CREDENTIALS: Final[dict[str, tuple[Field, ...]]] = {
    "bedrock": (
        Field("awsKeys.accessKeyId", "AWS access key id", most=200),
        Field("awsKeys.secretAccessKey", "AWS secret access key", "secret"),
        _obtained(
            ("aws-instance", "The role of this EC2 instance"),
            ("aws-container", "The role of this container (ECS, EKS)"),
            ("aws-web-identity", "A web identity (EKS)"),
            ("aws-profile", "A profile of AWS's shared files"),
        ),
        Field("providerSpecificData.awsProfile", "AWS profile", hint="Empty: the usual one."),
        Field(
            "providerSpecificData.roleArn",
            "AWS role",
            hint="For a web identity.",
            example="arn:aws:iam::...",
        ),
    ),
    "vertex": (
        Field("serviceAccount", "Google service account", "lines", "The key file, as JSON."),
        _obtained(("google-metadata", "The service account of this Google Cloud machine")),
    ),
    "azure": (
        Field("entraApp.tenantId", "Entra ID: tenant", most=100),
        Field("entraApp.clientId", "Entra ID: application (client) id", most=100),
        Field("entraApp.clientSecret", "Entra ID: client secret", "secret"),
    ),
}
"""The credentials of a provider besides a key."""

_STEERING: Final = (
    Field("priority", "Priority", "whole", "1 to 100; lower is used first."),
    Field("isActive", "Active", "switch", "Inactive connections get no requests."),
    Field("defaultModel", "Default model", hint="For tests, and for requests without a model."),
    Field("weight", "Weight", "whole", "Its share, if calls are shared by weight."),
)
REFUSES: Final = "providerSpecificData.refuses"
_REQUESTS: Final = (
    inexpressible("as usual: refuse", "providerSpecificData.inexpressible"),
    Field(
        REFUSES,
        "Members that the provider refuses",
        "lines",
        "By the names of its dialect; they are left out. One in a line; - for none. Empty: as known.",
        example="logit_bias",
    ),
)
_LIMITS: Final = (
    Field("maxConcurrent", "Requests at once", "whole", "Empty: no limit."),
    Field("requestsPerMinute", "Requests in a minute", "whole", "Empty: no limit."),
    Field("tokensPerMinute", "Tokens in a minute", "whole", "Empty: no limit."),
    Field("minGapMs", "Between two requests", "whole", "Empty: nothing.", "ms"),
    Field("queueDepth", "Requests that may wait", "whole", "Empty: they go to the next."),
    Field("queueTimeoutMs", "They wait at most", "whole", "Empty: 10,000.", "ms"),
)
_QUOTA: Final = (
    Field(
        "quotaWindowThresholds",
        "Kept back of the provider's quota",
        "pairs",
        "One `window = percent` in a line, by the names that are shown above or at Limits.",
        example="five_hour = 10",
    ),
)


def address_fields(provider: str) -> tuple[Field, ...]:
    parts = [f"providerSpecificData.{name}" for name in address_parts(provider)]
    return tuple(field for name in parts for field in _ADDRESS if field.name == name)


def new_groups(provider: str, *, is_refused: bool = False) -> tuple[Group, ...]:
    """The form of a new connection: what this provider needs, and no other's fields. After a refusal the address
    is open, because it is as likely to be wrong as the credential.
    """
    is_open = needs_address(provider) or provider in ON_YOUR_MACHINE or is_refused
    return (
        Group(
            "Credential",
            (
                _NAME,
                _KEY,
                *_CREDENTIALS.get(provider, ()),
                Field("storeAnyway", "Store it though its check fails", "switch"),
            ),
            is_open=True,
        ),
        Group("Address", address_fields(provider), is_open=is_open),
        Group("How it is used", _STEERING),
        Group("Requests", _REQUESTS),
    )


def change_groups(provider: str) -> tuple[Group, ...]:
    """The form that changes a connection of this provider."""
    return (
        Group(
            "What it is",
            (
                Field("name", "Name", most=200, is_required=True),
                Field("displayName", "Shown as", most=200),
                Field(
                    "apiKey", "A new API key", "secret", "Leave it empty to keep the current one."
                ),
            ),
            is_open=True,
        ),
        Group("How it is used", _STEERING, is_open=True),
        Group("Requests", _REQUESTS),
        Group("Limits of the connection", _LIMITS),
        Group("Quota", _QUOTA),
        Group("Address", address_fields(provider)),
    )


USAGE_KEY: Final = (
    Group(
        "Key for its usage",
        (
            Field(
                "usageKey",
                "Administrator's key",
                "secret",
                "Sent to the provider's usage route only. Leave it empty to delete the current one.",
            ),
        ),
    ),
)
