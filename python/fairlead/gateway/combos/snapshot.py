"""Combos and aliases as the snapshot holds them."""

from __future__ import annotations

from typing import Any

from fairlead.gateway.combos.alias_table import all_aliases
from fairlead.gateway.combos.fields import ComboStep, ModelStep
from fairlead.gateway.combos.table import StoredCombo, all_combos
from fairlead.store.file import Connection


def compile_combos(con: Connection) -> dict[str, Any]:
    """The sections `combos` and `aliases` of the snapshot, without combos that are switched off."""
    return {
        "combos": [_combo(combo) for combo in all_combos(con) if combo.fields.is_active],
        "aliases": all_aliases(con),
    }


def _combo(combo: StoredCombo) -> dict[str, Any]:
    return {
        "id": combo.id,
        "name": combo.fields.name,
        "strategy": combo.fields.strategy,
        "steps": [_step(step) for step in combo.fields.models],
        "params": combo.fields.config.model_dump(exclude_none=True),
    }


def _step(step: ModelStep | ComboStep) -> dict[str, Any]:
    if isinstance(step, ComboStep):
        return {"kind": "combo-ref", "combo": step.combo_name, "weight": step.weight}
    return {
        "kind": "model",
        "model": step.model,
        "connection_id": step.connection_id,
        "weight": step.weight,
        "prompt": step.prompt,
    }
