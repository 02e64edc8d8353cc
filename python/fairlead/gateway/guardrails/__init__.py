"""Management of guardrails: the list of them, and a dry run."""
