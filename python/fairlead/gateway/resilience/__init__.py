"""How patient the gateway is with providers that fail, and what it holds against them now."""
