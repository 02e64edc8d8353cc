"""Conversations: items that callers and responses add to, and that later responses continue."""
