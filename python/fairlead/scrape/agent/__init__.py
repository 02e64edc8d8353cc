"""Agents: a model that works in a browser towards a goal, one action at a time. Its actions (`action.py`), its
prompts (`prompt.py`), the loop (`run.py`), the routes (`router.py`).
"""
