"""Reverse tasks: long pieces of analysis that an agent works on in stages, over many sessions.

Four tools read and change them and answer with one envelope that says what to call next. Read in
this order: `envelope.py` (what is answered), `task.py` and `table.py` (what is stored), `fields.py`
(what is asked), `plan.py` (strategies, steps, failures), `environment.py` (what a runtime lacks),
`answer.py` (from a finding to an envelope), then the tools: `manage.py`, `orchestrate.py`,
`health.py`; `tools.py` and `router.py` offer them to agents and to programs.
"""
