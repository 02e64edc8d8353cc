"""Groups of keys: teams and what they are parts of, their limits, their members, and keys that members make."""
