"""A profile of AWS's shared files, `~/.aws/credentials` and `~/.aws/config`, by the rules of AWS's SDKs.

Supported: keys, `role_arn` with `source_profile`, `credential_source` or `web_identity_token_file`. Not supported:
single sign-on, which needs a browser, and `credential_process`, which would run a command.
"""

from __future__ import annotations

import configparser
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from fairlead.gateway.cloud_credentials.obtained import NotObtained, Obtained
from fairlead.gateway.cloud_credentials.security_token_service import Role, TokenService
from fairlead.gateway.cloud_credentials.small_file import FileMissing, read_small
from fairlead.gateway.cloud_credentials.web_identity import exchange_file

CREDENTIALS: Final = "AWS_SHARED_CREDENTIALS_FILE"
CONFIG: Final = "AWS_CONFIG_FILE"
# A chain of profiles that is longer has a circle.
_CHAIN_MAX: Final = 5

Sources = Mapping[str, Callable[[], Awaitable[Obtained]]]


@dataclass(frozen=True, slots=True)
class Profiles:
    """The sections of both files by the name of their profile, and the sources that `credential_source` names."""

    sections: dict[str, dict[str, str]]
    service: TokenService
    sources: Sources

    async def keys_of(self, name: str, depth: int = 0) -> Obtained:
        """The keys of a profile; `NotObtained` says what is missing."""
        profile = self.sections.get(name)
        if profile is None:
            raise NotObtained(f"There is no profile `{name}` in the shared files.")
        arn = profile.get("role_arn")
        if arn and depth < _CHAIN_MAX:
            role = Role(
                arn, profile.get("role_session_name", "fairlead"), profile.get("external_id")
            )
            return await self._of_role(name, profile, role, depth)
        if arn:
            raise NotObtained(f"The profile `{name}` is part of a circle of source_profile.")
        return _static(name, profile)

    async def _of_role(
        self, name: str, profile: dict[str, str], role: Role, depth: int
    ) -> Obtained:
        if path := profile.get("web_identity_token_file"):
            return await exchange_file(self.service, role, path, "web_identity_token_file")
        if source := profile.get("source_profile"):
            if source == name:
                # The profile has keys beside the role.
                given = _static(name, profile)
            else:
                given = await self.keys_of(source, depth + 1)
        elif (source := profile.get("credential_source")) in self.sources:
            given = await self.sources[str(source)]()
        else:
            raise NotObtained(
                f"The profile `{name}` has a role_arn without a source_profile, a credential_source or a "
                "web_identity_token_file."
            )
        return await self.service.for_keys(role, given.aws or {})


async def from_profile(service: TokenService, name: str, sources: Sources) -> Obtained:
    """The keys of the profile. The files are read each time; keys without a role do not end."""
    environment = service.environment
    credentials = await _sections(environment.get(CREDENTIALS) or "~/.aws/credentials", CREDENTIALS)
    config = await _sections(environment.get(CONFIG) or "~/.aws/config", CONFIG)
    if credentials is None and config is None:
        raise NotObtained(f"There is no shared file: set {CREDENTIALS} or {CONFIG}.")
    sections: dict[str, dict[str, str]] = {}
    for title, values in (config or {}).items():
        if title == "default" or title.startswith("profile "):
            sections[title.removeprefix("profile ").strip()] = values
    for title, values in (credentials or {}).items():
        sections[title] = sections.get(title, {}) | values
    return await Profiles(sections, service, sources).keys_of(name)


async def _sections(path: str, source: str) -> dict[str, dict[str, str]] | None:
    """The sections of a file; None where there is no file."""
    try:
        text = await read_small(path, source)
    except FileMissing:
        return None
    parser = configparser.RawConfigParser(default_section="", strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        raise NotObtained(f"The file of {source} is not in the format of AWS's files.") from None
    return {title: dict(parser.items(title)) for title in parser.sections()}


def _static(name: str, profile: dict[str, str]) -> Obtained:
    key_id, secret = profile.get("aws_access_key_id"), profile.get("aws_secret_access_key")
    if not key_id or not secret:
        raise NotObtained(
            f"The profile `{name}` has no aws_access_key_id with an aws_secret_access_key and no role_arn; "
            "single sign-on and credential_process are not supported."
        )
    token = profile.get("aws_session_token") or None
    return Obtained(
        aws={"access_key_id": key_id, "secret_access_key": secret, "session_token": token}
    )
