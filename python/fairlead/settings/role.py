"""The role of a node: all of the gateway, its relays alone, or control alone; and how relays and controls meet."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from fairlead.net.node_link import NODE_TOKEN_MIN, check_node_token, read_control_urls, read_listen
from fairlead.settings.group import AbsolutePath, OptionalSecret, SettingsGroup


def _token(secret: OptionalSecret) -> OptionalSecret:
    if secret is not None:
        check_node_token(secret.get_secret_value())
    return secret


def _urls(text: str | None) -> str | None:
    if text is not None:
        read_control_urls(text)
    return text


def _listen(text: str | None) -> str | None:
    if text is not None:
        read_listen(text)
    return text


class RoleFields(SettingsGroup):
    """The role, and the way between relays and controls of different machines."""

    role: Literal["all", "relay", "control"] = Field(
        "all",
        description="The role of this node: `all`; `relay` answers calls and uses a remote control for "
        "everything else; `control` manages, for remote relays, and accepts only calls of "
        "its jobs, on loopback.",
    )
    control_listen: Annotated[str | None, AfterValidator(_listen)] = Field(
        None,
        description="With the role `control`: address and port on which relays reach it over TLS, such as "
        "`10.0.0.5:20129`.",
    )
    control_urls: Annotated[str | None, AfterValidator(_urls)] = Field(
        None,
        description="With the role `relay`: the controls, as `https://host:port` with commas between them. One is "
        "used until it fails, then the next.",
    )
    node_token: Annotated[OptionalSecret, AfterValidator(_token)] = Field(
        None,
        description=f"The token of relays at controls: at least {NODE_TOKEN_MIN} characters, the same at every node.",
    )
    node_token_file: AbsolutePath | None = Field(
        None, description="File that holds the node token: a mounted secret."
    )
    node_certificate: AbsolutePath | None = Field(
        None,
        description="PEM file with the certificate chain: of a control for its port, of a relay for controls that "
        "ask for one.",
    )
    node_key: AbsolutePath | None = Field(
        None, description="PEM file with the private key of `FAIRLEAD_NODE_CERTIFICATE`."
    )
    node_ca: AbsolutePath | None = Field(
        None,
        description="PEM file with the authorities that nodes trust, and no others: set it at every node. Without it a "
        "relay trusts the system's authorities, and a control asks relays for no certificate.",
    )

    def given_role_fields(self) -> list[str]:
        """The settings beside the role itself that are given."""
        names = RoleFields.model_fields.keys() - {"role"}
        return sorted(name for name in names if getattr(self, name) is not None)
