"""Searching the web: engines that an operator named, asked in the order of their priority."""
