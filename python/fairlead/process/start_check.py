"""Combinations of settings that must not start. Each check raises `Refusal` with the fix in its sentence."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from fairlead.errors import Refusal
from fairlead.net.host import is_loopback
from fairlead.process.placeholder_password import is_placeholder
from fairlead.process.setting_names import flag_and_variable, variable_of


def check_tls(certificate: Path | None, key: Path | None) -> None:
    """Requires the certificate and its key to be set together and to be readable."""
    if (certificate is None) != (key is None):
        given, missing = (
            ("tls_certificate", "tls_key") if certificate else ("tls_key", "tls_certificate")
        )
        raise Refusal(
            f"{flag_and_variable(given)} needs {flag_and_variable(missing)} as well: "
            "give both or neither."
        )
    for name, path in (("tls_certificate", certificate), ("tls_key", key)):
        if path is None:
            continue
        try:
            with path.open("rb") as file:
                file.read(1)
        except OSError as error:
            raise Refusal(
                f"{flag_and_variable(name)}: {path} cannot be read ({error.strerror}): "
                "name a readable PEM file."
            ) from None


def check_sign_on(issuer: str | None, client_id: str | None, *, local_auth_disabled: bool) -> None:
    """Requires both issuer and client id for sign-on, and at least one way to sign in."""
    if (issuer is None) != (client_id is None):
        raise Refusal(
            "SERVICE_OIDC_ISSUER and SERVICE_OIDC_CLIENT_ID need each other: give both or neither."
        )
    if local_auth_disabled and issuer is None:
        raise Refusal(
            "SERVICE_OIDC_LOCAL_AUTH_DISABLED without SERVICE_OIDC_ISSUER leaves no way to "
            "sign in: name the identity provider, or leave passwords on."
        )


def check_issuer(admin_url: str | None, public_url: str | None) -> None:
    """Requires both addresses of an external token issuer."""
    for name, url in (("issuer_admin_url", admin_url), ("issuer_public_url", public_url)):
        if url is None:
            raise Refusal(
                f"AUTH__ENABLED needs {variable_of(name)}: name the issuer's address, or "
                "run one here with ISSUER__ENABLED=true."
            )


def check_issuer_way(admin_url: str) -> None:
    """Requires https to a token issuer on another machine, since access tokens and the gateway's own bearer go
    there.
    """
    parts = urlsplit(admin_url)
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise Refusal(
            f"ISSUER__ADMIN_URL is {admin_url}, another machine by plain http, and access tokens would "
            "cross the network in clear: name its https address, or a loopback address of a tunnel."
        )


def check_ca_file(path: Path) -> None:
    """Requires a file of trusted certificates that can be read."""
    # Most processes never need it, and it takes a while to import.
    import ssl  # noqa: PLC0415

    try:
        ssl.create_default_context(cafile=str(path))
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or type(error).__name__
        raise Refusal(
            f"ISSUER__CA_FILE: {path} cannot be read ({reason}): name a PEM file with certificates."
        ) from None


def check_public(
    host: str, initial_password: str | None, password_stored: bool, *, keys_required: bool
) -> None:
    """Requires keys and a real password on an address that other machines can reach."""
    way_out = "or bind 127.0.0.1, or allow it with --allow-unauthenticated-bind"
    if not keys_required:
        raise Refusal(
            f"{flag_and_variable('host')} is {host}, which others can reach, "
            f"and keys are not required: set REQUIRE_API_KEY=true, {way_out}."
        )
    if password_stored:
        return
    if not initial_password or is_placeholder(initial_password):
        state = "is a well-known placeholder" if initial_password else "is not set"
        raise Refusal(
            f"{flag_and_variable('host')} is {host}, which others can reach, "
            f"and INITIAL_PASSWORD {state}: set it to a password that you choose, {way_out}."
        )
