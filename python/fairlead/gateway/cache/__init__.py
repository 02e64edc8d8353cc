"""Management of the response cache, which lives in the relay workers: figures, entries, clearing."""
