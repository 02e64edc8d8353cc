"""Agents: a model that works in a browser towards a goal, one action at a time. What it may do (`action.py`), what
it is shown and asked (`prompt.py`), the loop (`run.py`), the routes (`router.py`).
"""
