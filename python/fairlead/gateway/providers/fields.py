"""The fields of a connection that a caller may set."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import orjson
from pydantic import AfterValidator, Field, StrictBool, StrictInt, field_validator, model_validator
from pydantic_core import PydanticCustomError

from fairlead import _core
from fairlead.gateway.fields import ModelId, Name, Spelled, Text
from fairlead.gateway.nodes.address import normalise_base_url
from fairlead.gateway.nodes.fields import BaseUrl
from fairlead.gateway.nodes.timeouts import Timeouts
from fairlead.gateway.providers.price import ModelPrice
from fairlead.gateway.providers.stated_facts import RequestFacts
from fairlead.wire import Wire

MASK = "***"
MAX_KEY_CHARS = 100_000

AuthType = Literal[
    "apikey",
    "aws",
    "aws-profile",
    "aws-web-identity",
    "aws-instance",
    "aws-container",
    "service-account",
    "google-metadata",
    "entra",
    "oauth",
    "none",
]


def _credential(text: str) -> str:
    # The credential goes into a header, and pasted text often ends in a line break.
    key = text.strip()
    if not key or len(key) > MAX_KEY_CHARS or not all("\x21" <= each <= "\x7e" for each in key):
        raise PydanticCustomError(
            "credential", "must be 1 to 100000 printable ASCII characters without spaces"
        )
    return key


ApiKey = Annotated[Text, AfterValidator(_credential)]


# The account becomes part of a host name or a path.
AddressPart = Annotated[
    Text, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$", description="Part of the address.")
]


class AwsKeys(Wire):
    """A key pair of Amazon's; `sessionToken` where it is a temporary one."""

    access_key_id: ApiKey
    secret_access_key: ApiKey
    session_token: ApiKey | None = None


class EntraApp(Wire):
    """An application of Microsoft Entra ID. Its secret is exchanged for access tokens."""

    tenant_id: AddressPart
    client_id: AddressPart
    client_secret: ApiKey


ApiVersion = Annotated[
    Text,
    Spelled(
        r"20[0-9]{2}-[0-9]{2}-[0-9]{2}(-preview)?",
        "must be a version of Azure OpenAI's API, such as `2024-10-21` or `2025-04-01-preview`",
    ),
]
DeploymentName = Annotated[
    Text, Spelled(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", "must be a deployment's name")
]
ProfileName = Annotated[
    Text, Spelled(r"[A-Za-z0-9_.@/:+-]{1,128}", "must be the name of a profile")
]
RoleArn = Annotated[
    Text,
    Spelled(
        r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]{1,512}", "must be a role's ARN"
    ),
]

WindowName = Annotated[
    Text, Spelled(r"[a-z0-9][a-z0-9._-]{0,63}", "must be a window's name, as `5h` or `tokens`")
]
Percent = Annotated[float, Field(strict=True, ge=0, lt=100, allow_inf_nan=False)]


def _account(file: dict[str, Any]) -> dict[str, Any]:
    # Signing once finds every error in the service account.
    try:
        _core.google_assertion(orjson.dumps(file), 0)
        normalise_base_url(str(file["token_uri"]))
    except ValueError as error:
        raise PydanticCustomError("service_account", f"cannot be used: {error}") from None
    return file


ServiceAccount = Annotated[dict[str, Any], Field(max_length=50), AfterValidator(_account)]


class ProviderSpecific(RequestFacts):
    """Fields that depend on the provider. In a change, a field that is not sent stays and null clears it."""

    base_url: BaseUrl | None = Field(None, description="Instead of the provider's own.")
    reasoning_control: Literal["chat-template", "openai"] | None = Field(
        None, description="How reasoning effort is requested; null detects it."
    )
    learn_limits: bool | None = Field(
        None,
        description="`false`: rates in the provider's headers are not enforced for this connection.",
    )
    reasoning_replay: bool | None = Field(
        None,
        description="Whether the provider gets its reasoning before tool calls back if the caller "
        "leaves it out; null: the known behaviour of the provider.",
    )
    inexpressible: Literal["refuse", "drop"] | None = Field(
        None,
        description="How requests with members that the provider does not accept are handled, if "
        "leaving them out changes the answer: `refuse` (as null does) answers 400, `drop` leaves them out. The "
        "`inexpressible` of a key or its group and the header `X-Gateway-Inexpressible` take precedence.",
    )
    prompt_cache: Literal["auto", "off"] | None = Field(
        None,
        description="Whether the gateway adds what the provider's prompt cache needs (`prompt_cache_key`, "
        "`cache_control`) to requests that set neither: `auto` (as null does) where the provider accepts it "
        "and reading from the cache is cheaper, `off` never.",
    )
    region: AddressPart | None = None
    project: AddressPart | None = None
    resource: AddressPart | None = None
    workspace: AddressPart | None = None
    account: AddressPart | None = None
    api_version: ApiVersion | None = Field(
        None,
        description="Azure: the version of its API, whose URLs contain the deployment; null: the API "
        "without versions (`/openai/v1`).",
    )
    deployments: Annotated[dict[ModelId, DeploymentName], Field(max_length=1000)] | None = Field(
        None,
        description="Azure: the deployment that serves each model. Only these models are listed; null: "
        "deployments have the names of their models.",
    )
    aws_profile: ProfileName | None = Field(
        None,
        description="With `aws-profile`: the profile in AWS's shared files; null: `AWS_PROFILE`, or "
        "`default`.",
    )
    role_arn: RoleArn | None = Field(
        None, description="With `aws-web-identity`: the role; null: `AWS_ROLE_ARN`."
    )
    timeouts: Timeouts | None = None
    prices: Annotated[dict[ModelId, ModelPrice], Field(max_length=1000)] | None = Field(
        None, description="Prices of this connection's models, instead of the catalogue's prices."
    )


class ConnectionFields(Wire):
    """The optional fields."""

    auth_type: AuthType | None = Field(
        None,
        description="When it is not sent: by the credential that is, else `none`. `oauth` is made by "
        "signing in (`/api/oauth`) and can only be kept. The gateway obtains the credential itself and renews it "
        "with `aws-profile` (AWS's shared files), `aws-web-identity` (a token in a file), `aws-instance` (the "
        "role of an EC2 instance), `aws-container` (the role of a container), `google-metadata` (the service "
        "account of a Google Cloud machine) and `entra` (an application of Microsoft Entra ID).",
    )
    api_key: ApiKey | None = Field(None, description="Sealed at rest, never shown again.")
    aws_keys: AwsKeys | None = Field(None, description="Sealed at rest, never shown again.")
    service_account: ServiceAccount | None = Field(
        None, description="The key file of a Google service account. Sealed, never shown again."
    )
    entra_app: EntraApp | None = Field(
        None, description="With `entra`. Sealed at rest, its secret never shown again."
    )
    display_name: Name | None = None
    priority: StrictInt = Field(50, ge=1, le=100, description="Lower is used first.")
    weight: StrictInt = Field(
        1,
        ge=0,
        le=1000,
        description="Its share of calls among connections of one priority, with the strategy `weighted`.",
    )
    is_active: StrictBool = True
    default_model: ModelId | None = None
    max_concurrent: Annotated[StrictInt, Field(ge=1, le=100_000)] | None = Field(
        None, description="Requests at once; null is no limit."
    )
    requests_per_minute: Annotated[StrictInt, Field(ge=1, le=1_000_000)] | None = Field(
        None, description="Requests in any 60 seconds; null is no limit."
    )
    tokens_per_minute: Annotated[StrictInt, Field(ge=1, le=1_000_000_000)] | None = Field(
        None, description="Tokens, input and output, in any 60 seconds; null is no limit."
    )
    min_gap_ms: Annotated[StrictInt, Field(ge=1, le=60_000)] | None = Field(
        None,
        description="Milliseconds from the beginning of one request to the next; null is none.",
    )
    queue_depth: Annotated[StrictInt, Field(ge=0, le=10_000)] | None = Field(
        None,
        description="Requests that may wait for these limits at once; 0 and null: they go to the "
        "next connection instead.",
    )
    queue_timeout_ms: Annotated[StrictInt, Field(ge=1, le=120_000)] | None = Field(
        None, description="Milliseconds that a request waits at most; null: 10000."
    )
    quota_window_thresholds: Annotated[dict[WindowName, Percent], Field(max_length=20)] | None = (
        Field(
            None,
            description="Percent of the provider's quota windows that is kept back, by the window's name "
            "as `/api/rate-limits` shows it; a window that is not named keeps back what "
            "`quota.thresholdPercent` of `/api/resilience` says. In force from the next answer on.",
        )
    )
    provider_specific_data: ProviderSpecific = Field(default_factory=ProviderSpecific)


class NewConnection(ConnectionFields):
    """The body that creates a connection."""

    provider: Annotated[Text, Field(min_length=1, max_length=200)] = Field(
        description="A catalogue id, a node's id or a node's prefix."
    )
    name: Name


class Candidate(ConnectionFields):
    """The body that is validated without being stored."""

    provider: Annotated[Text, Field(min_length=1, max_length=200)]
    name: Name | None = None


class ConnectionChange(ConnectionFields):
    """The body that changes a connection: any of the fields, at least one."""

    name: Name | None = None

    @model_validator(mode="before")
    @classmethod
    def _has_a_field(cls, body: Any) -> Any:
        if not isinstance(body, dict):
            return body
        # A client that sends an answer back, with the masked key, does not mean to change the key.
        key = body.get("apiKey")
        sent = {k: v for k, v in body.items() if k != "apiKey" or not _is_masked(key)}
        if not sent:
            raise PydanticCustomError("no_valid_fields", "No valid fields to update")
        return sent

    @field_validator(
        "name",
        "auth_type",
        "priority",
        "weight",
        "is_active",
        "provider_specific_data",
        mode="before",
    )
    @classmethod
    def _is_not_null(cls, value: object) -> object:
        if value is None:
            raise PydanticCustomError("not_null", "must not be null; leave it out to keep it")
        return value


def _is_masked(key: object) -> bool:
    return isinstance(key, str) and key.startswith(MASK)
