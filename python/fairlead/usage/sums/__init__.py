"""Sums of requests over time, and by dimension."""
