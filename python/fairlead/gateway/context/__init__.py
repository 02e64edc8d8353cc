"""Conversations on their way to providers: pipelines that make them shorter, thinking, system prompt, windows.

`fields.py` (pipelines as callers write them), `table.py` (their rows, and the operator's own filters),
`catalogue.py` (what the engine knows), `rules.py` (settings name only what exists), `snapshot.py` (what the relay is
told); routes: `combos_router.py`, `settings_router.py`, `preview_router.py`, `raw_output_router.py`. The work itself is
Rust's, in `rust/context`.
"""
