"""Stored chat completions, of which the gateway has none."""
