"""Agents: stored skills that answer A2A messages by asking their model through the gateway.

`skill*` is what is stored of an agent, `task*` what it was given to do, `runner` does it, `protocol`,
`card` and `door` are the agent as its callers see it, `operator_router` as an operator does.
"""
