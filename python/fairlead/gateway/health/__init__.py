"""Health: what is true of planes, providers and storage at this moment."""
