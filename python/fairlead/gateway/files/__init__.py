"""Files that callers keep at the gateway: what a batch reads, and what it wrote."""
