"""Metrics and traces for monitoring."""
