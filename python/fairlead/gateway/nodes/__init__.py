"""Provider nodes: an operator's own endpoints, with their addresses, headers, timeouts and routes."""
