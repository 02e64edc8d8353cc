"""Usage: settled requests from the spool into `usage.duckdb`, and what is told of them."""
