"""Agents: stored skills that answer A2A messages by asking their model through the gateway.

`skill*` is the stored agent, `task*` its tasks, `runner` works on them, `protocol`, `card` and `endpoint` are the
A2A side for callers, `operator_router` the management side.
"""
