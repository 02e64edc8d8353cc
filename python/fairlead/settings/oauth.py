"""Tool clients that sign in by OAuth."""

from __future__ import annotations

from pydantic import Field

from fairlead.settings.group import SettingsGroup


class OauthFields(SettingsGroup):
    """How strict the authorization server is."""

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
