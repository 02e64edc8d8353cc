"""Prices of models: what is known of them, and what the operator set instead."""
