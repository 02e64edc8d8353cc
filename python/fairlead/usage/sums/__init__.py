"""Sums of requests over time, and by what they have in common."""
