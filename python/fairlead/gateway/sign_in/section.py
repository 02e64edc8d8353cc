"""How people sign in at a provider: the `oauth` section of its file, with the operator's own client laid over it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Self

import orjson
from pydantic import AfterValidator, BaseModel, Field, PlainSerializer, SecretStr
from pydantic_core import PydanticCustomError

from fairlead.errors import InvalidRequest
from fairlead.gateway.fields import Spelled, Text
from fairlead.gateway.nodes.fields import BaseUrl
from fairlead.gateway.providers.catalogue import CatalogueProvider
from fairlead.gateway.providers.endpoint import Provider
from fairlead.net.host import is_loopback
from fairlead.net.secret_origin import check_given_for, origin_of
from fairlead.store.file import Connection
from fairlead.store.sealer import Sealer
from fairlead.wire import Wire

MASK = "***"


def _guarded(url: str) -> str:
    host = origin_of(url).partition("://")[2].rpartition(":")[0] or origin_of(url)[7:]
    if not url.startswith("https://") and not is_loopback(host):
        raise PydanticCustomError("https", "must be an https address: tokens are sent there")
    return url


SafeUrl = Annotated[BaseUrl, AfterValidator(_guarded)]
ScopeName = Annotated[
    Text,
    Field(min_length=1, max_length=300),
    Spelled(r"[\x21\x23-\x5b\x5d-\x7e]+", "must be printable ASCII without spaces and quotes"),
]
ParameterName = Annotated[Text, Field(max_length=64), Spelled(r"[A-Za-z0-9_.-]+", "must be a name")]


class SectionChange(Wire):
    """A custom client at a provider. Null values are those of the provider's file; a node has no file."""

    client_id: Annotated[Text, Field(min_length=1, max_length=1024)] | None = None
    client_secret: Annotated[SecretStr, Field(min_length=1, max_length=4096)] | None = Field(
        None, description="Sealed at rest; sent as `***` it keeps the stored one."
    )
    authorization_url: SafeUrl | None = None
    token_url: SafeUrl | None = None
    device_authorization_url: SafeUrl | None = None
    redirect_uri: Annotated[Text, Field(min_length=1, max_length=2048)] | None = Field(
        None, description="As it is registered at the provider."
    )
    scopes: Annotated[list[ScopeName], Field(max_length=50)] | None = None
    authorize_params: (
        Annotated[
            dict[ParameterName, Annotated[Text, Field(max_length=1024)]], Field(max_length=20)
        ]
        | None
    ) = Field(None, description="More parameters of the page on which one signs in.")
    token_auth: Literal["none", "client_secret_basic", "client_secret_post"] | None = Field(
        None, description="Null: `client_secret_basic` with a secret, else `none`."
    )


class SectionView(Wire):
    """The section in force."""

    client_id: str | None
    client_secret: Annotated[
        SecretStr | None, PlainSerializer(lambda secret: secret and MASK, when_used="json")
    ]
    authorization_url: str | None
    token_url: str | None
    device_authorization_url: str | None
    redirect_uri: str | None
    scopes: list[str]
    authorize_params: dict[str, str]
    token_auth: str | None


class StoredSection(BaseModel):
    """A section as it is stored, without its secret."""

    client_id: str | None = None
    authorization_url: str | None = None
    token_url: str | None = None
    device_authorization_url: str | None = None
    redirect_uri: str | None = None
    scopes: list[str] | None = None
    authorize_params: dict[str, str] | None = None
    token_auth: str | None = None

    def over(self, other: Self) -> Self:
        """This section, with the values that it lacks taken from the other."""
        return other.model_copy(update=self.model_dump(exclude_none=True))


@dataclass(frozen=True, slots=True)
class Section:
    """A section in force with its secret opened. Its printed form does not contain it."""

    provider: str
    fields: StoredSection
    client_secret: str | None = field(default=None, repr=False)
    is_own: bool = False
    secret_origins: str | None = None
    """The origins to which the secret may be sent (`secret_origin.spell_origins`)."""

    def secret_addresses(self) -> list[str]:
        """The addresses that get the client secret."""
        urls = (self.fields.token_url, self.fields.device_authorization_url)
        return [url for url in urls if url is not None]

    def check_secret(self, url: str) -> None:
        """`InvalidRequest` where the client secret was given for other hosts than the one of this address."""
        if self.client_secret is not None:
            check_given_for("clientSecret", self.secret_origins, url)

    def need(self, name: str) -> str:
        """A member that an action cannot do without; `InvalidRequest` where nobody has set it."""
        value = getattr(self.fields, name)
        if value is None:
            words = "".join(part.capitalize() for part in name.split("_")[1:])
            raise InvalidRequest(
                f"{self.provider} has no {name.split('_', maxsplit=1)[0]}{words}: "
                f"set it with PUT /api/oauth/{self.provider}/settings.",
                param="provider",
            )
        return str(value)


def find_section(con: Connection, sealer: Sealer, provider: Provider) -> Section:
    """The section of a provider that is in force; every member may be missing."""
    shipped = provider.oauth if isinstance(provider, CatalogueProvider) else None
    base = StoredSection() if shipped is None else StoredSection(**shipped.model_dump())
    row = con.execute(
        "SELECT section, secret_sealed, secret_origins FROM provider_clients WHERE provider = ?",
        [provider.id],
    ).fetchone()
    if row is None:
        return Section(provider.id, base)
    own = StoredSection.model_validate_json(row[0])
    secret = None if row[1] is None else sealer.unseal(_sealed_as(provider.id), row[1]).decode()
    return Section(provider.id, own.over(base), secret, is_own=True, secret_origins=row[2])


@dataclass(frozen=True, slots=True)
class ClientSecret:
    """A client secret and the origins that it may be sent to. Its printed form does not contain it."""

    text: str = field(repr=False)
    origins: str


def put_section(
    con: Connection,
    sealer: Sealer,
    provider_id: str,
    own: StoredSection,
    secret: ClientSecret | None,
) -> None:
    """Stores the operator's own section, in the writer."""
    drop_section(con, provider_id)
    sealed = None if secret is None else sealer.seal(_sealed_as(provider_id), secret.text.encode())
    con.execute(
        "INSERT INTO provider_clients (provider, section, secret_sealed, secret_origins) VALUES (?, ?, ?, ?)",
        [
            provider_id,
            orjson.dumps(own.model_dump(exclude_none=True)).decode(),
            sealed,
            None if secret is None else secret.origins,
        ],
    )


def drop_section(con: Connection, provider_id: str) -> bool:
    """Deletes the operator's own section, in the writer; False where there is none."""
    query = "DELETE FROM provider_clients WHERE provider = ? RETURNING 1"
    return con.execute(query, [provider_id]).fetchone() is not None


def _sealed_as(provider_id: str) -> str:
    return f"provider-client:{provider_id}"


def show_section(section: Section) -> SectionView:
    """The section without its secret."""
    shown: dict[str, Any] = section.fields.model_dump()
    shown["scopes"] = shown["scopes"] or []
    shown["authorize_params"] = shown["authorize_params"] or {}
    secret = None if section.client_secret is None else SecretStr(MASK)
    return SectionView.model_construct(client_secret=secret, **shown)
