"""Coding tools: their catalogue, what is installed, and their configuration files, which are edited and restored."""
