"""What a fairlead process is started with.

`ServeSettings.load(**flags)` reads it once, in the supervisor: flags first, then environment, then
defaults. The two planes get what they need from `relay_config` and `control_config`
(docs/explanation/contracts.md) and read no other environment variable, but for OpenTelemetry's own
(`tracing.py`).
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import os
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict

from fairlead import _core
from fairlead.errors import Refusal
from fairlead.host import is_loopback
from fairlead.placeholder import PLACEHOLDERS, is_placeholder
from fairlead.start_check import (
    check_issuer,
    check_issuer_way,
    check_public,
    check_sign_on,
    check_tls,
)
from fairlead.tracing import Batching, read_batching, read_sampling
from fairlead.variable import flag_and_variable, flag_of, variable_of
from fairlead.web_address import service_address, web_address

__all__ = [
    "CONTROL_THREADS",
    "PASSWORD_MAX_CHARS",
    "PLACEHOLDERS",
    "ControlConfig",
    "ServeFields",
    "ServeSettings",
    "flag_and_variable",
    "flag_of",
    "is_placeholder",
    "variable_of",
    "web_address",
]

# What control computes with at once. Half of the cores, because the relay needs the others; measured on two, a second
# thread made taking in usage dearer by half and no faster.
CONTROL_THREADS = max(1, min(4, (os.cpu_count() or 1) // 2))

_HOST_NAME = re.compile(r"[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*")

# What signing in takes.
PASSWORD_MAX_CHARS = 200


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def host_names_in(text: str) -> list[str]:
    """The names of a list with commas between."""
    return [name for each in text.split(",") if (name := each.strip())]


class ServeFields(BaseModel):
    """The fields, whoever fills them in."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        validate_by_name=True,
        validate_by_alias=True,
    )

    host: str = Field("127.0.0.1", min_length=1, description="Address to listen on.")
    port: int = Field(20128, ge=1, le=65535, description="Port to listen on.")
    workers: int = Field(1, ge=1, le=64, description="Relay worker processes.")
    front: Literal["granian", "native"] = Field(
        "granian",
        description="Who has the relay's socket: `granian`, or the engine itself (`native`).",
    )
    threads: int = Field(
        1, ge=1, le=63, description="Threads of the relay; more than one with `native` only."
    )
    data_dir: Path = Field(
        Path("~/.fairlead"), description="Where everything is kept that outlives a start."
    )
    demo: bool = Field(False, description="Start the stand-in provider too.")
    allow_unauthenticated_bind: bool = Field(
        False, description="Listen on a public address although anybody may call."
    )
    tls_certificate: Path | None = Field(None, description="PEM file with the certificate chain.")
    tls_key: Path | None = Field(None, description="PEM file with the private key.")
    secret_key: SecretStr | None = Field(
        None,
        description="Base64 of 32 bytes that seal stored secrets, instead of `secret.key`.",
    )
    require_api_key: bool = Field(
        False,
        validation_alias=AliasChoices("REQUIRE_API_KEY"),
        description="Whether `/v1` asks for a key.",
    )
    initial_password: SecretStr | None = Field(
        None,
        validation_alias=AliasChoices("INITIAL_PASSWORD"),
        description="Signs in as long as no password is stored.",
    )
    max_open_streams: int = Field(
        10_000, ge=1, le=1_000_000, description="Open streams; more are answered 503."
    )
    max_in_flight: int = Field(
        10_000, ge=1, le=1_000_000, description="Requests at once; more are answered 503."
    )
    heartbeat_ms: int = Field(
        15_000, ge=100, le=600_000, description="Silence before a stream gets a comment."
    )
    drain_ms: int = Field(
        30_000, ge=0, le=3_600_000, description="How long a stop waits for what is in flight."
    )
    control_silence_ms: int = Field(
        60_000,
        ge=3_000,
        le=3_600_000,
        description="How long control may answer nothing on its socket before it is started anew.",
    )
    body_idle_ms: int = Field(
        30_000, ge=100, le=600_000, description="How long a caller may pause in a body."
    )
    max_connections: int = Field(
        12_000,
        ge=1,
        le=1_000_000,
        description="Connections at once; more are answered 503. With `native` only; never more than "
        "half of the descriptors that the process may have.",
    )
    max_connections_per_address: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="The same of one address (one /64 network in IPv6); 0 for no limit.",
    )
    allow_private_fetch: str = Field(
        "",
        max_length=4096,
        description="Private networks, as CIDRs with commas between, in which pages may be fetched "
        "and webhooks delivered; metadata addresses never.",
    )

    oauth_refresh_grace_s: float = Field(
        10.0,
        ge=0,
        le=300,
        description="Seconds in which a refresh token that was just rotated still gets an access "
        "token, so that two windows of one client do not sign each other out; 0 is strict.",
    )

    oauth_client_documents: bool = Field(
        True,
        description="Whether a tool client may be known by the https address of a document about it, "
        "which is fetched, instead of registering.",
    )

    service_oidc_issuer: str | None = Field(
        None,
        max_length=2048,
        validation_alias=AliasChoices("SERVICE_OIDC_ISSUER"),
        description="Identity provider that people sign in at: its issuer, an https address.",
    )
    service_oidc_client_id: str | None = Field(
        None,
        max_length=1024,
        validation_alias=AliasChoices("SERVICE_OIDC_CLIENT_ID"),
        description="What the identity provider calls this gateway.",
    )
    service_oidc_client_secret: SecretStr | None = Field(
        None,
        validation_alias=AliasChoices("SERVICE_OIDC_CLIENT_SECRET"),
        description="The gateway's secret at the identity provider; none for a public client.",
    )
    service_oidc_local_auth_disabled: bool = Field(
        False,
        validation_alias=AliasChoices("SERVICE_OIDC_LOCAL_AUTH_DISABLED"),
        description="Whether people sign in at the identity provider only.",
    )
    service_oidc_join_existing: bool = Field(
        False,
        validation_alias=AliasChoices("SERVICE_OIDC_JOIN_EXISTING"),
        description="Whether somebody whom the identity provider sends for the first time becomes the user with "
        "their verified address, instead of being refused; the owner's account is never joined so.",
    )
    service_trust_proxy: bool = Field(
        False,
        validation_alias=AliasChoices("SERVICE_TRUST_PROXY"),
        description="Whether `X-Forwarded-*` is believed: a proxy of yours must set it.",
    )
    service_trusted_proxies: int = Field(
        1,
        ge=1,
        le=16,
        validation_alias=AliasChoices("SERVICE_TRUSTED_PROXIES"),
        description="How many proxies of yours stand one behind the other, with `SERVICE_TRUST_PROXY`: so far "
        "from the right in `X-Forwarded-For` stands the caller's address.",
    )
    service_public_base_url: str | None = Field(
        None,
        max_length=2048,
        validation_alias=AliasChoices("SERVICE_PUBLIC_BASE_URL"),
        description="The address under which people reach the gateway.",
    )
    host_names: str = Field(
        "",
        max_length=4096,
        description="Names, with commas between, by which the gateway may be called without an API "
        "key, beside `localhost`, addresses and the name in `SERVICE_PUBLIC_BASE_URL`.",
    )

    auth_enabled: bool = Field(
        False,
        validation_alias=AliasChoices("AUTH__ENABLED"),
        description="Whether agents ask their callers for an access token.",
    )
    auth_provider: Literal["issuer", "hydra"] = Field(
        "issuer",
        validation_alias=AliasChoices("AUTH__PROVIDER"),
        description="Whose tokens: `issuer`, an OAuth 2.0 server with Hydra's admin API; `hydra` is the same.",
    )
    auth_timeout_ms: int = Field(
        5000,
        ge=100,
        le=30_000,
        validation_alias=AliasChoices("AUTH__TIMEOUT_MS"),
        description="How long a token's introspection may take; then the caller is refused.",
    )
    auth_cache_s: int = Field(
        30,
        ge=0,
        le=30,
        validation_alias=AliasChoices("AUTH__CACHE_S"),
        description="How long another issuer's word on a good token counts; ours is asked each time.",
    )
    issuer_enabled: bool = Field(
        False,
        validation_alias=AliasChoices("ISSUER__ENABLED"),
        description="Whether the gateway runs the token issuer itself.",
    )
    issuer_host: str = Field(
        "127.0.0.1",
        min_length=1,
        validation_alias=AliasChoices("ISSUER__HOST"),
        description="Address that the issuer's token endpoint listens on; its admin listener is on loopback always.",
    )
    issuer_port: int = Field(
        20131,
        ge=1,
        le=65535,
        validation_alias=AliasChoices("ISSUER__PORT"),
        description="Port of the issuer's token endpoint.",
    )
    issuer_admin_port: int = Field(
        20130,
        ge=1,
        le=65535,
        validation_alias=AliasChoices("ISSUER__ADMIN_PORT"),
        description="Port of the issuer's admin listener.",
    )
    issuer_admin_url: str | None = Field(
        None,
        max_length=2048,
        validation_alias=AliasChoices("ISSUER__ADMIN_URL"),
        description="Where agents' access tokens are introspected: the admin address of an issuer.",
    )
    issuer_public_url: str | None = Field(
        None,
        max_length=2048,
        validation_alias=AliasChoices("ISSUER__PUBLIC_URL"),
        description="Where agents' callers get their tokens: the public address of the issuer.",
    )
    issuer_admin_token: SecretStr | None = Field(
        None,
        validation_alias=AliasChoices("ISSUER__ADMIN_TOKEN"),
        description="Bearer that the issuer's admin listener asks for, and that is shown to it.",
    )
    issuer_token_ttl_s: int = Field(
        3600,
        ge=60,
        le=86_400,
        validation_alias=AliasChoices("ISSUER__TOKEN_TTL_S"),
        description="How long an access token of the issuer lasts.",
    )

    @field_validator("issuer_admin_url", "issuer_public_url")
    @classmethod
    def _is_issuer_address(cls, text: str | None) -> str | None:
        return service_address(text) if text else None

    @field_validator("service_oidc_issuer", "service_public_base_url")
    @classmethod
    def _is_web_address(cls, text: str | None) -> str | None:
        return web_address(text) if text else None

    @field_validator("service_oidc_client_id")
    @classmethod
    def _empty_text_is_none(cls, text: str | None) -> str | None:
        return text or None

    @field_validator("data_dir", "tls_certificate", "tls_key")
    @classmethod
    def _absolute(cls, path: Path | None) -> Path | None:
        return path.expanduser().absolute() if path is not None else None

    @field_validator("host_names")
    @classmethod
    def _are_host_names(cls, text: str) -> str:
        for name in host_names_in(text):
            if _HOST_NAME.fullmatch(name) is None:
                raise ValueError(
                    f"`{name[:64]}` is no host name: write letters, digits, `-`, `_` and dots, "
                    "without a scheme, a port or a `*`"
                )
        return text

    @field_validator("allow_private_fetch")
    @classmethod
    def _are_networks(cls, networks: str) -> str:
        # The address is any: it is the list that is judged.
        _core.address_allowed("127.0.0.1", "public", networks)
        return networks

    @field_validator(
        "initial_password", "secret_key", "service_oidc_client_secret", "issuer_admin_token"
    )
    @classmethod
    def _empty_is_none(cls, secret: SecretStr | None) -> SecretStr | None:
        return secret if secret is not None and secret.get_secret_value() else None

    @field_validator("initial_password")
    @classmethod
    def _can_be_typed(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is not None:
            text = secret.get_secret_value()
            if len(text) > PASSWORD_MAX_CHARS or any("\ud800" <= each <= "\udfff" for each in text):
                raise ValueError(f"must be UTF-8 of at most {PASSWORD_MAX_CHARS} characters")
        return secret

    @field_validator("secret_key")
    @classmethod
    def _is_key(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is not None:
            try:
                size = len(base64.b64decode(secret.get_secret_value().strip(), validate=True))
            except binascii.Error:
                raise ValueError(
                    "must be base64 of 32 bytes; make one with `openssl rand -base64 32`"
                ) from None
            if size != 32:
                raise ValueError(f"must be base64 of 32 bytes, and is of {size}")
        return secret

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can call."""
        return is_loopback(self.host)

    @property
    def issuer_own_url(self) -> str:
        """Where callers reach the issuer that this process runs."""
        if self.issuer_public_url is not None:
            return self.issuer_public_url
        host = f"[{self.issuer_host}]" if ":" in self.issuer_host else self.issuer_host
        return f"{'https' if self.tls_certificate else 'http'}://{host}:{self.issuer_port}"


class ServeSettings(ServeFields, BaseSettings):
    """`ServeFields` from flags and environment (`FAIRLEAD_<FIELD>`, `REQUIRE_API_KEY`,
    `INITIAL_PASSWORD`).
    """

    model_config = SettingsConfigDict(
        env_prefix="FAIRLEAD_",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
    )

    @classmethod
    def load(cls, **flags: object) -> Self:
        """The settings; a flag that is None was not given. `Refusal` names the first wrong field,
        its rule and fix.
        """
        try:
            return cls(**{name: value for name, value in flags.items() if value is not None})  # type: ignore[arg-type]
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            name = str(first["loc"][0])
            rule = first["msg"].removeprefix("Value error, ").replace("Input should", "must", 1)
            rule = rule.removesuffix(", unable to parse string as an integer")
            raise Refusal(f"{flag_and_variable(name)}: {rule[:1].lower()}{rule[1:]}.") from None

    def check(self, *, password_stored: bool = False) -> None:
        """Raises `Refusal` for a combination that must not start."""
        if self.workers > 1:
            raise Refusal(
                f"{flag_and_variable('workers')} is {self.workers}, and more than one worker needs "
                "shared state (FAIRLEAD_SHARED_URL), which this version does not have yet: "
                "leave it at 1."
            )
        if self.threads > 1 and self.front != "native":
            raise Refusal(
                f"{flag_and_variable('threads')} is {self.threads}, and granian relays on one "
                f"thread: set {flag_and_variable('front')} to native, or leave it at 1."
            )
        check_tls(self.tls_certificate, self.tls_key)
        check_sign_on(
            self.service_oidc_issuer,
            self.service_oidc_client_id,
            local_auth_disabled=self.service_oidc_local_auth_disabled,
        )
        if self.auth_enabled and not self.issuer_enabled:
            check_issuer(self.issuer_admin_url, self.issuer_public_url)
        if self.auth_enabled and self.issuer_admin_url is not None:
            check_issuer_way(self.issuer_admin_url)
        read_sampling(os.environ)
        if not self.is_loopback and not self.allow_unauthenticated_bind:
            initial = self.initial_password.get_secret_value() if self.initial_password else None
            check_public(self.host, initial, password_stored, keys_required=self.require_api_key)

    def _own_names(self) -> list[str]:
        """What the gateway is called beside addresses; where it listens may be said by a name."""
        own = [urlsplit(self.service_public_base_url or "").hostname, self.host]
        named = [name for name in own if name and _HOST_NAME.fullmatch(name)]
        return [*host_names_in(self.host_names), *(each for each in named if not _is_address(each))]

    def relay_config(
        self,
        *,
        link_token: str,
        control_socket: Path,
        secret_key: bytes,
        version: str,
        vectors: dict[str, str] | None = None,
    ) -> dict[str, Any]:
        """The document of `FAIRLEAD_RELAY_CONFIG`; `secret_key` is what `store.sealer.load_key`
        gave, `vectors` what `vector_files` found.
        """
        sampling = read_sampling(os.environ)
        return {
            "data_dir": str(self.data_dir),
            "control_socket": str(control_socket),
            "link_token": link_token,
            "secret_key": base64.b64encode(secret_key).decode(),
            "require_api_key": self.require_api_key,
            "loopback_only": self.is_loopback,
            "max_open_streams": self.max_open_streams,
            "max_in_flight": self.max_in_flight,
            "heartbeat_ms": self.heartbeat_ms,
            "drain_ms": self.drain_ms,
            "body_idle_ms": self.body_idle_ms,
            "host_names": self._own_names(),
            "version": version,
            "tracing": sampling.document() if sampling else None,
            **({"vectors": vectors} if vectors else {}),
        }

    def door_config(self, host: str) -> dict[str, Any]:
        """The document that `_core.Door` takes beside the relay's; `host` is a numeric address."""
        tls = (self.tls_certificate, self.tls_key)
        return {
            "host": host,
            "port": self.port,
            "threads": self.threads,
            "max_connections": self.max_connections,
            "max_connections_per_address": self.max_connections_per_address,
            "tls_certificate": str(tls[0]) if tls[0] else None,
            "tls_key": str(tls[1]) if tls[1] else None,
        }

    def control_config(
        self, *, link_token: str, control_socket: Path, setup_token: str | None = None
    ) -> dict[str, Any]:
        """The document of `FAIRLEAD_CONTROL_CONFIG`, secrets in clear: it is for a child's
        environment only.
        """
        document = self.model_dump(mode="json")
        for name in (
            "secret_key",
            "initial_password",
            "service_oidc_client_secret",
            "issuer_admin_token",
        ):
            secret: SecretStr | None = getattr(self, name)
            document[name] = secret.get_secret_value() if secret else None
        batching = read_batching(os.environ)
        document["tracing"] = asdict(batching) if batching else None
        return {
            **document,
            "link_token": link_token,
            "control_socket": str(control_socket),
            "setup_token": setup_token,
        }


class ControlConfig(ServeFields):
    """What the control plane is told by the supervisor."""

    link_token: SecretStr = Field(min_length=16)
    control_socket: Path
    # What whoever sets the gateway up from elsewhere must have read where it was started.
    setup_token: SecretStr | None = None
    tracing: Batching | None = None
