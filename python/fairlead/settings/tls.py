"""TLS on the gateway's own port."""

from __future__ import annotations

from pydantic import Field

from fairlead.settings.group import AbsolutePath, SettingsGroup


class TlsFields(SettingsGroup):
    """The certificate and its key."""

    tls_certificate: AbsolutePath | None = Field(
        None, description="PEM file with the certificate chain."
    )
    tls_key: AbsolutePath | None = Field(None, description="PEM file with the private key.")
