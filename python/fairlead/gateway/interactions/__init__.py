"""Interactions: Google's dialect for background responses."""
