"""How calls of providers leave this machine: outbound proxies by level."""
