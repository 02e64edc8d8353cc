"""The store of control's state."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator

from fairlead.settings.group import OptionalSecret, SettingsGroup

_SCHEMES = ("postgresql", "postgres")


class StoreFields(SettingsGroup):
    """The database of several nodes; without it everything is in the data directory."""

    database_url: OptionalSecret = Field(
        None,
        description="PostgreSQL that holds control's state instead of `state.duckdb`: "
        "`postgresql://user:password@host:5432/database`, with libpq's parameters after a `?`. Needs the extra "
        "`postgresql`.",
    )

    @field_validator("database_url")
    @classmethod
    def _is_postgresql(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is not None:
            try:
                parts = urlsplit(secret.get_secret_value())
            except ValueError:
                raise ValueError(
                    "must be an address such as postgresql://user@host/database"
                ) from None
            if parts.scheme not in _SCHEMES or not parts.path.strip("/"):
                raise ValueError(
                    "must begin with postgresql:// and name a database: postgresql://user@host/database"
                )
        return secret
