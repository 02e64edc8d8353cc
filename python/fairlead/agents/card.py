"""The agent card of A2A 0.3 and 1.0 in one document. It does not contain the prompt."""

from __future__ import annotations

from typing import Any, Final

from fairlead import __version__
from fairlead.agents.skill import Skill
from fairlead.settings import ServeFields

PROTOCOL_VERSION: Final = "0.3.0"
READ: Final = "agent:read"
WRITE: Final = "agent:write"


def card_of(skill: Skill, base: str, settings: ServeFields) -> dict[str, Any]:
    """The card of an agent; `base` is the URL at which the gateway was called."""
    card: dict[str, Any] = {
        "protocolVersion": PROTOCOL_VERSION,
        "name": skill.name,
        "description": skill.description,
        "url": f"{base}/agents/{skill.slug}",
        "preferredTransport": "JSONRPC",
        # A2A 1.0: the versions, with the preferred one first.
        "supportedInterfaces": [
            {
                "url": f"{base}/agents/{skill.slug}",
                "protocolBinding": "JSONRPC",
                "protocolVersion": version,
            }
            for version in ("1.0", "0.3")
        ],
        "version": __version__,
        "capabilities": {
            "streaming": True,
            "pushNotifications": False,
            "stateTransitionHistory": False,
        },
        "defaultInputModes": ["text/plain", "application/json"],
        "defaultOutputModes": ["text/plain"],
        "skills": [
            {
                "id": skill.slug,
                "name": skill.name,
                "description": skill.description,
                "tags": ["agent-skill"],
            }
        ],
        "supportsAuthenticatedExtendedCard": False,
    }
    if settings.auth_enabled:
        url = settings.issuer_public_url or settings.issuer_own_url
        flow = {
            "tokenUrl": f"{url}/oauth2/token",
            "scopes": {
                READ: "Read the agent's tasks.",
                WRITE: "Give the agent tasks, cancel them.",
            },
        }
        card["securitySchemes"] = {
            "oauth2": {"type": "oauth2", "flows": {"clientCredentials": flow}}
        }
        card["security"] = [{"oauth2": [READ, WRITE]}]
        card["securityRequirements"] = [{"schemes": {"oauth2": {"list": [READ, WRITE]}}}]
    return card
