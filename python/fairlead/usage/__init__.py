"""Usage: settled requests, read from the spool into `usage.duckdb`, and the figures of them."""
