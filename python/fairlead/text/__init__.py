"""Texts that people and programs send, and sentences for them."""
