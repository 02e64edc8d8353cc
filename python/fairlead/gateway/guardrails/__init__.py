"""Guardrails as management sees them: what there is, and a dry run."""
