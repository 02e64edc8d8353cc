"""Spending that counts for limits, and alerts about it."""
