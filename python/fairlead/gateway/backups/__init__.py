"""Backups of the state: create, list, download and restore."""
