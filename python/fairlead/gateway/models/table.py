"""The table `provider_models`: one row for each model that the operator configured. `provider` is a
catalogue id or a node's id.

A custom model is one that the operator added. The other rows hold only overrides of the provider's
own data, and outlast its changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from fairlead.store.file import Connection as Database
from fairlead.store.table import Table


@dataclass(frozen=True, slots=True)
class ProviderModel:
    """A row of the table. `settings` holds the fields of `ModelSettings` that are set, by their
    Python names.
    """

    provider: str
    model_id: str
    is_custom: bool
    settings: dict[str, Any]
    created_at_ms: int
    updated_at_ms: int

    @property
    def is_empty(self) -> bool:
        """Whether nothing is set, so that the row can be deleted."""
        return not self.is_custom and not self.settings


_MODELS: Final = Table("provider_models", ProviderModel, json={"settings": dict})


def find_model(con: Database, provider: str, model_id: str) -> ProviderModel | None:
    """The row of this model."""
    return _MODELS.find(con, "provider = ? AND model_id = ?", provider, model_id)


def models_of(con: Database, provider: str | None = None) -> list[ProviderModel]:
    """The rows of one provider, or of all, by provider and model."""
    where, values = ("WHERE provider = ?", [provider]) if provider is not None else ("", [])
    return _MODELS.select(con, f"{where} ORDER BY provider, model_id", *values)


def put_model(con: Database, model: ProviderModel) -> None:
    """Writes the row in place of the one before, in the writer; an empty one is deleted."""
    delete_model(con, model.provider, model.model_id)
    if not model.is_empty:
        _MODELS.insert(con, model)


def delete_model(con: Database, provider: str, model_id: str) -> bool:
    """Deletes the row, in the writer; False when there is none."""
    query = "DELETE FROM provider_models WHERE provider = ? AND model_id = ? RETURNING 1"
    return con.execute(query, [provider, model_id]).fetchone() is not None


def changed(model: ProviderModel, sent: dict[str, Any], now_ms: int) -> ProviderModel:
    """The row after a change: fields that were not sent stay, null clears."""
    settings = {**model.settings, **sent}
    non_null = {name: value for name, value in settings.items() if value is not None}
    return replace(model, settings=non_null, updated_at_ms=max(now_ms, model.updated_at_ms + 1))
