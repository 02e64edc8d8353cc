"""Figures of one kind each, from the sums or the log."""
