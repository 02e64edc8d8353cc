"""Reverse tasks: long analyses that an agent works on in stages, over many sessions.

Four tools read and change them, and answer with one envelope that names the next call. Read in this order:
`envelope.py` (the response), `task.py` and `table.py` (stored records), `fields.py` (requests), `plan.py`
(strategies, steps, failures), `environment.py` (missing capabilities of a runtime), `answer.py` (builds
envelopes), then the tools: `manage.py`, `orchestrate.py`, `health.py`; `tools.py` and `router.py` expose them
to agents and to programs.
"""
