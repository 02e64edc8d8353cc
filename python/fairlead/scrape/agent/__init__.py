"""Agents: a model that works in a browser towards a goal, one action at a time. What it may do (`action`), what
it is told and asked (`asking`), the loop (`run`), the routes (`router`).
"""
