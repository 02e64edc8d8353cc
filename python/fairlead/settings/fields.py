"""Every setting of a start, whoever fills it in: the groups together."""

from __future__ import annotations

from fairlead.settings.access import AccessFields
from fairlead.settings.acp import AcpFields
from fairlead.settings.agents import AgentAuthFields
from fairlead.settings.coding_tools import CodingToolFields
from fairlead.settings.egress import EgressFields
from fairlead.settings.files import FileFields
from fairlead.settings.instance import InstanceFields
from fairlead.settings.issuer import IssuerFields
from fairlead.settings.limits import LimitFields
from fairlead.settings.listener import ListenerFields
from fairlead.settings.oauth import OauthFields
from fairlead.settings.public_address import PublicAddressFields
from fairlead.settings.role import RoleFields
from fairlead.settings.shared_store import SharedStoreFields
from fairlead.settings.sign_on import SignOnFields
from fairlead.settings.store import StoreFields
from fairlead.settings.tls import TlsFields


class ServeFields(
    # From last to first: pydantic lists the fields of the last base first, and the reference does too.
    IssuerFields,
    AgentAuthFields,
    PublicAddressFields,
    SignOnFields,
    OauthFields,
    AcpFields,
    CodingToolFields,
    EgressFields,
    LimitFields,
    AccessFields,
    TlsFields,
    FileFields,
    StoreFields,
    SharedStoreFields,
    RoleFields,
    InstanceFields,
    ListenerFields,
):
    """All fields, by flat names: those of the environment."""

    @property
    def relay_own_url(self) -> str:
        """The address of this instance's relay, from this machine."""
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "[::]": "[::1]"}.get(self.host, self.host)  # noqa: S104
        if ":" in host and not host.startswith("["):
            host = f"[{host}]"
        return f"{'https' if self.tls_certificate else 'http'}://{host}:{self.port}"

    @property
    def issuer_own_url(self) -> str:
        """The callers' address of the issuer in this process."""
        if self.issuer_public_url is not None:
            return self.issuer_public_url
        host = f"[{self.issuer_host}]" if ":" in self.issuer_host else self.issuer_host
        return f"{'https' if self.tls_certificate else 'http'}://{host}:{self.issuer_port}"
