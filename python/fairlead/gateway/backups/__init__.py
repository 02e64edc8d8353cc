"""Backups of the state: made, listed, taken away and put back."""
