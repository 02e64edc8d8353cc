"""The routes of usage, and their bodies."""
