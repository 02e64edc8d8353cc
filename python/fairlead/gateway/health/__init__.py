"""Health of planes, providers and storage."""
