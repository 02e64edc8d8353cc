"""Prices of models: known ones, and the operator's overrides."""
