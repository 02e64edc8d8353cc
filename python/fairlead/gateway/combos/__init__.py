"""Combos and aliases: names that stand for several models, or for one by another name."""
