"""Callers and their calls: the caller of a request, its address, and the calls that control makes."""
