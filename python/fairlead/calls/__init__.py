"""Callers and their calls: who calls, by which address, and calls that control makes itself."""
