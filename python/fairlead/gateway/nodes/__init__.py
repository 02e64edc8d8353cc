"""Provider nodes: an operator's own endpoints, their addresses, headers, timers and routes."""
