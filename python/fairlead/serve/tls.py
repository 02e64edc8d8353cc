"""Checks the TLS certificate and its key before anything is started."""

from __future__ import annotations

import ssl

from fairlead.errors import Refusal
from fairlead.settings.serve import ServeSettings


def check_certificate(settings: ServeSettings) -> None:
    """Raises `Refusal` unless the files, where given, are a certificate and its unencrypted key."""
    certificate, key = settings.tls_certificate, settings.tls_key
    if certificate is None or key is None:
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # Given a password, even an empty one, OpenSSL does not ask for one on the terminal.
        context.load_cert_chain(certificate, key, password="")
    except (OSError, ValueError):
        raise Refusal(
            f"--tls-certificate {certificate} and --tls-key {key} are not a PEM certificate and its "
            "key without a password: name files that belong together."
        ) from None
