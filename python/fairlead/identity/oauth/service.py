"""The authorization server's state in this process, and the dependency by which its routes get it:
`oauth: OAuthDep`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from fairlead.calls.caller import Caller, caller_of
from fairlead.calls.origin import address_of
from fairlead.errors import Internal
from fairlead.identity.oauth.device_codes import PollPace
from fairlead.identity.oauth.documents import Documents
from fairlead.identity.oauth.issuer import Issuer
from fairlead.identity.oauth.ledger import Ledger
from fairlead.identity.oauth.shared_ledger import SharedLedger
from fairlead.identity.oauth.tool_gate import ToolGate
from fairlead.identity.rate_window import RateWindow
from fairlead.store.services import Services, services_of
from fairlead.store.tool_access import ToolAccess

REGISTRATIONS_A_MINUTE = 10
TOKEN_REQUESTS_A_MINUTE = 60


@dataclass(frozen=True, slots=True)
class OAuthService:
    """The state of the process: ledger, documents and limits. The limits count by address, apart
    from those of signing in.
    """

    services: Services
    ledger: Ledger
    gate: ToolGate
    documents: Documents
    registrations: RateWindow = field(default_factory=lambda: RateWindow(REGISTRATIONS_A_MINUTE))
    token_requests: RateWindow = field(default_factory=lambda: RateWindow(TOKEN_REQUESTS_A_MINUTE))
    device_codes: RateWindow = field(default_factory=lambda: RateWindow(REGISTRATIONS_A_MINUTE))
    user_codes: RateWindow = field(default_factory=RateWindow)
    poll_pace: PollPace = field(default_factory=PollPace)
    revocations: RateWindow = field(default_factory=lambda: RateWindow(TOKEN_REQUESTS_A_MINUTE))

    def issuer(self, request: Request, caller: Caller) -> Issuer | None:
        """The server's addresses for a request; None where nothing trustworthy gives them."""
        return Issuer.of(request, caller, self.services.config)

    def address(self, request: Request) -> str:
        """The address that the limits count."""
        return address_of(request, caller_of(request), self.services.config)


async def open_oauth(services: Services) -> ToolAccess:
    """Reads the stored records and keeps the service for the process."""
    config = services.config
    kind = SharedLedger if config.database_url is not None else Ledger
    ledger = kind(services.state, config.oauth_refresh_grace_s)
    await ledger.load()
    gate = ToolGate(config, services.state, ledger)
    documents = Documents(services.egress, is_on=config.oauth_client_documents)
    services.put(OAuthService, OAuthService(services, ledger, gate, documents))
    return gate


def oauth_service(services: Services) -> OAuthService:
    """The service of this process."""
    oauth = services.existing(OAuthService)
    if oauth is None:
        raise Internal("The authorization server is not running.")
    return oauth


async def _oauth(request: Request) -> OAuthService:
    return oauth_service(services_of(request))


OAuthDep = Annotated[OAuthService, Depends(_oauth)]
