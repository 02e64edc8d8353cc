"""The response cache: what of it is told and forgotten; it lives in the relay workers."""
