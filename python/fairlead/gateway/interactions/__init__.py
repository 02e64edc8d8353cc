"""Interactions: Google's words for responses that are worked on in the background."""
