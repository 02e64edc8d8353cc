"""Building blocks of the settings' groups: their base and value types."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, SecretStr

from fairlead.net.web_address import service_address, web_address


class SettingsGroup(BaseModel):
    """The fields of one concern. Errors never show what was given: it may be a secret."""

    model_config = ConfigDict(
        # A process uses one of the classes that have these fields, and does not wait for the validators of the others.
        defer_build=True,
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        validate_by_name=True,
        validate_by_alias=True,
    )


def _absolute(path: Path) -> Path:
    return path.expanduser().absolute()


def _empty_is_none(secret: SecretStr | None) -> SecretStr | None:
    return secret if secret is not None and secret.get_secret_value() else None


def _web_address(text: str | None) -> str | None:
    return web_address(text) if text else None


def _service_address(text: str | None) -> str | None:
    return service_address(text) if text else None


AbsolutePath = Annotated[Path, AfterValidator(_absolute)]
"""A path that may begin with `~`, made absolute."""
OptionalSecret = Annotated[SecretStr | None, AfterValidator(_empty_is_none)]
"""A secret; empty means none."""
OptionalWebAddress = Annotated[str | None, AfterValidator(_web_address)]
"""An https address (`web_address`); empty means none."""
OptionalServiceAddress = Annotated[str | None, AfterValidator(_service_address)]
"""The address of another service (`service_address`); empty means none."""
