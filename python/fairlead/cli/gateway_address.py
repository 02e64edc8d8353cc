"""The gateway of a command and its credential: an instance on this machine, or a gateway at which the user is
signed in.

First of these that was given counts: `--url`, `--context`, `--data-dir`, the context in use, this machine's instance.
The local token goes to a loopback address only, and no credential crosses a network in clear.
"""

from __future__ import annotations

import ssl
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from fairlead.cli.chosen import CONTEXT, LOCAL
from fairlead.cli.context_file import GatewayContext, read_contexts
from fairlead.cli.failure import CommandFailed
from fairlead.cli.instance_lock import is_in_use
from fairlead.cli.options import DATA_DIR
from fairlead.errors import Refusal
from fairlead.net.host import is_loopback

_DEFAULT_PORT: Final = 20128


@dataclass(frozen=True, slots=True)
class GatewayAddress:
    """A gateway and how it is talked to; the credential is read when it is needed."""

    url: str
    tls: ssl.SSLContext
    token_path: Path | None
    """The file with the local token; None for a gateway that was signed in at."""
    bearer: str | None = field(default=None, repr=False)
    api_key: str | None = field(default=None, repr=False)
    """The credential for calling models, instead of `bearer`."""

    @property
    def is_local(self) -> bool:
        return self.token_path is not None

    def headers(self, path: str) -> dict[str, str]:
        """The credential for a path. Raises `CommandFailed` where the local token cannot be read."""
        if self.token_path is None:
            calls_models = self.api_key is not None and path.startswith("/v1/")
            return {"authorization": f"Bearer {self.api_key if calls_models else self.bearer}"}
        try:
            return {"x-gateway-cli-token": self.token_path.read_text("ascii").strip()}
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is no token"
            raise CommandFailed(
                f"the local token {self.token_path} cannot be read ({reason}): name the "
                "running instance's directory with --data-dir, as the user that it runs as."
            ) from None


def find_gateway(url: str | None, data_dir: Path) -> GatewayAddress:
    """The gateway that a command's options mean. Raises `Refusal` and `CommandFailed`."""
    if url is not None:
        return _at(url.rstrip("/"), data_dir)
    name = CONTEXT.get()
    if name is None:
        current = read_contexts().current
        if data_dir == DATA_DIR:
            name = current
        elif current not in (None, LOCAL):
            print(
                f"fairlead: NOTE: This command uses the instance in {data_dir} (--data-dir or "
                f"FAIRLEAD_DATA_DIR), not the context in use, {current}. Choose it with --context {current}.",
                file=sys.stderr,
            )
    if name is None or name == LOCAL:
        return _local(_own_url(data_dir.expanduser()), data_dir)
    return signed_in(read_contexts().find(name))


def signed_in(context: GatewayContext) -> GatewayAddress:
    """A gateway with the credential for it, its certificate checked as the context says."""
    check_confidential(context.url)
    if context.insecure:
        print(
            f"fairlead: WARNING: The certificate of {context.url} is not checked: anyone on the "
            "network path can read and change everything. Name its authority with `fairlead login --ca-file`.",
            file=sys.stderr,
        )
    return GatewayAddress(context.url, _checked_tls(context), None, context.token, context.api_key)


def check_confidential(url: str) -> None:
    """Refuses an address at which a credential would cross a network in clear."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Refusal(f"{url} is no address of a gateway: write it as https://gateway.example.")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise Refusal(
            f"{url} is another machine by plain http, and the credential would cross the network in "
            "clear: name its https address, or a loopback address of a tunnel."
        )


def _at(url: str, data_dir: Path) -> GatewayAddress:
    check_confidential(url)
    if is_loopback(urlsplit(url).hostname or ""):
        return _local(url, data_dir)
    context = read_contexts().at(url)
    if context is None:
        raise Refusal(
            f"--url (FAIRLEAD_URL): {url} is not on this machine, and the local token counts "
            f"nowhere else: run `fairlead login {url}` first."
        )
    return signed_in(context)


def _local(url: str, data_dir: Path) -> GatewayAddress:
    if not is_loopback(urlsplit(url).hostname or ""):
        raise Refusal(f"{url} is not on this machine: run `fairlead login {url}`.")
    # On loopback there is no name to verify.
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname = False
    tls.verify_mode = ssl.CERT_NONE
    return GatewayAddress(url, tls, data_dir.expanduser() / "cli-token")


def _checked_tls(context: GatewayContext) -> ssl.SSLContext:
    try:
        tls = ssl.create_default_context(cafile=context.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise CommandFailed(
            f"{context.ca_file} is no PEM file with certificates ({error.strerror or error})."
        ) from None
    if context.insecure:
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    return tls


def _own_url(data_dir: Path) -> str:
    """The address of the instance of a data directory. Raises `CommandFailed` while it does not listen yet."""
    if (recorded := _recorded_url(data_dir)) is not None:
        return recorded
    try:
        is_starting = is_in_use(data_dir)
    except CommandFailed:
        # Another user's directory, which the token's file says better.
        is_starting = False
    if is_starting:
        raise CommandFailed(
            f"the instance in {data_dir} is starting or stopping: try again in a moment."
        )
    return f"http://127.0.0.1:{_set_port(data_dir)}"


def _set_port(data_dir: Path) -> int:
    """The port that `fairlead serve` would listen on with this environment."""
    from fairlead.settings.serve import ServeSettings

    try:
        return ServeSettings.load(data_dir=data_dir).port
    except Refusal:
        # Settings that no gateway starts with; `fairlead doctor` says which.
        return _DEFAULT_PORT


def _recorded_url(data_dir: Path) -> str | None:
    try:
        return (data_dir / "run" / "url").read_text("ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
