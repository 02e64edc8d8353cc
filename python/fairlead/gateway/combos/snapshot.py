"""Combos and aliases as the snapshot holds them."""

from __future__ import annotations

from typing import Any

from fairlead.gateway.combos.alias_table import all_aliases
from fairlead.gateway.combos.defaults import ComboDefaults, read_defaults
from fairlead.gateway.combos.fields import PARAMETERS, ComboStep, ModelStep, NewCombo
from fairlead.gateway.combos.mapping_table import all_mappings
from fairlead.gateway.combos.rules import TimeLimits, compile_context, compile_validation
from fairlead.gateway.combos.table import StoredCombo, all_combos
from fairlead.store.file import Connection


def compile_combos(con: Connection) -> dict[str, Any]:
    """The sections `combos`, `aliases` and `mappings` of the snapshot, without combos that are switched off."""
    defaults = read_defaults(con)
    combos = [combo for combo in all_combos(con) if combo.fields.is_active]
    names = {combo.id: combo.fields.name for combo in combos}
    return {
        "combos": [_combo(combo, defaults) for combo in combos],
        "aliases": all_aliases(con),
        "mappings": [
            {"pattern": mapping.fields.pattern, "combo": names[mapping.fields.combo_id]}
            for mapping in all_mappings(con)
            if mapping.fields.enabled and mapping.fields.combo_id in names
        ],
    }


def _combo(combo: StoredCombo, defaults: ComboDefaults) -> dict[str, Any]:
    return {
        "id": combo.id,
        "name": combo.fields.name,
        "strategy": combo.fields.strategy,
        "steps": [_step(step) for step in combo.fields.models],
        "params": combo.fields.config.model_dump(include=set(PARAMETERS), exclude_none=True),
        "rules": _rules(combo.fields, defaults),
    }


def _rules(fields: NewCombo, defaults: ComboDefaults) -> dict[str, Any]:
    """The rules that are set, the combo's own before the defaults."""
    own = fields.config.model_dump(include=set(TimeLimits.model_fields), exclude_none=True)
    rules: dict[str, Any] = {**defaults.combo_defaults.model_dump(exclude_none=True), **own}
    if "target_timeout_ms" not in own and defaults.provider_overrides:
        rules["provider_timeouts_ms"] = {
            prefix: limits.target_timeout_ms
            for prefix, limits in defaults.provider_overrides.items()
        }
    named = {
        "system_message": fields.system_message,
        "tool_filter_regex": fields.tool_filter_regex,
        "allowed_providers": fields.allowed_providers,
        "allowed_model_families": fields.allowed_model_families,
        "context_length": fields.context_length,
        "context_cache_protection": fields.context_cache_protection,
    }
    rules |= {name: value for name, value in named.items() if value}
    config = fields.config
    if config.context_requirements is not None:
        rules["context"] = compile_context(config.context_requirements)
    if config.response_validation is not None:
        rules["validation"] = compile_validation(config.response_validation)
    if config.shadow_routing is not None and config.shadow_routing.enabled:
        rules["shadow"] = config.shadow_routing.model_dump(exclude={"enabled"})
    # A zero says as much as nothing, but for a queue that nobody waits in.
    return {name: value for name, value in rules.items() if value != 0 or name == "queue_depth"}


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
