"""Gateway API keys: their permissions, table, routes, and their part of the snapshot."""
