"""Batches: every line of a file run through the gateway, within a day, as the key that asked."""
