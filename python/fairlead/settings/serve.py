"""The settings of `fairlead serve`: read once, checked together, handed on to the planes."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import asdict
from typing import Any, Self
from urllib.parse import urlsplit

from pydantic import SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from fairlead.errors import Refusal
from fairlead.process.setting_names import flag_and_variable, variable_of
from fairlead.process.start_check import (
    check_ca_file,
    check_issuer,
    check_issuer_way,
    check_public,
    check_sign_on,
    check_tls,
)
from fairlead.process.tracing import read_batching, read_sampling
from fairlead.settings.fields import ServeFields
from fairlead.settings.public_address import HOST_NAME
from fairlead.text.names_in import names_in


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
        if self.workers > 1 and self.shared_url is None:
            raise Refusal(
                f"{flag_and_variable('workers')} is {self.workers}, and more than one worker holds its "
                f"limits in a store that all share: name a Redis 7 or Valkey with {variable_of('shared_url')}, "
                "or leave it at 1."
            )
        if self.threads > 1 and self.front != "native":
            raise Refusal(
                f"{flag_and_variable('threads')} is {self.threads}, and granian relays on one "
                f"thread: set {flag_and_variable('front')} to native, or leave it at 1."
            )
        self.check_files()
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
        if self.issuer_ca_file is not None:
            check_ca_file(self.issuer_ca_file)
        read_sampling(os.environ)
        if self.is_protected:
            initial = self.initial_password.get_secret_value() if self.initial_password else None
            check_public(self.host, initial, password_stored, keys_required=self.require_api_key)

    @property
    def is_protected(self) -> bool:
        """Whether the address may be listened on only with keys and an owner's password (`check_public`)."""
        return not self.is_loopback and not self.allow_unauthenticated_bind

    def _own_names(self) -> list[str]:
        """Names of the gateway besides its addresses; a listening host may be given by name."""
        own = [urlsplit(self.service_public_base_url or "").hostname, self.host]
        named = [name for name in own if name and HOST_NAME.fullmatch(name)]
        return [*names_in(self.host_names), *(each for each in named if not _is_address(each))]

    def relay_config(
        self, *, version: str, vectors: dict[str, str] | None = None
    ) -> dict[str, Any]:
        """The document of `FAIRLEAD_RELAY_CONFIG`, but for what is made for each start (`serve.planes`).
        `vectors` is what `vector_files` found.
        """
        sampling = read_sampling(os.environ)
        store = self.shared_store_document()
        return {
            "data_dir": str(self.data_dir),
            "require_api_key": self.require_api_key,
            "loopback_only": self.is_loopback,
            **({"keeps_snapshot": True} if self.role == "relay" else {}),
            "max_open_streams": self.max_open_streams,
            "max_in_flight": self.max_in_flight,
            "heartbeat_ms": self.heartbeat_ms,
            "drain_ms": self.drain_ms,
            "drain_delay_ms": self.drain_delay_ms,
            "body_idle_ms": self.body_idle_ms,
            "socket_life_ms": self.socket_life_ms,
            "host_names": self._own_names(),
            "trusted_proxies": self.service_trusted_proxies if self.service_trust_proxy else 0,
            "version": version,
            "tracing": sampling.document() if sampling else None,
            **({"vectors": vectors} if vectors else {}),
            **({"shared_store": store | {"workers": self.workers}} if store else {}),
        }

    def listener_config(self) -> dict[str, Any]:
        """The document that `_core.Listener` takes beside the relay's, but for the numeric address `host`."""
        tls = (self.tls_certificate, self.tls_key)
        return {
            "port": self.port,
            "threads": self.threads,
            "max_connections": self.max_connections,
            "max_connections_per_address": self.max_connections_per_address,
            "tls_certificate": str(tls[0]) if tls[0] else None,
            "tls_key": str(tls[1]) if tls[1] else None,
        }

    def control_config(self) -> dict[str, Any]:
        """The document of `FAIRLEAD_CONTROL_CONFIG`, but for what is made for each start (`serve.planes`).
        Secrets are in clear: it is for a child's environment only.
        """
        document = self.model_dump(mode="json")
        for name in (
            "secret_key",
            "other_secret_key",
            "database_url",
            "node_token",
            "files_secret_access_key",
            "initial_password",
            "service_oidc_client_secret",
            "issuer_admin_token",
        ):
            secret: SecretStr | None = getattr(self, name)
            document[name] = secret.get_secret_value() if secret else None
        # Relay workers alone talk to that store.
        document["shared_url"] = None
        batching = read_batching(os.environ)
        document["tracing"] = asdict(batching) if batching else None
        return document


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
