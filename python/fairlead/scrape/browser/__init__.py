"""Reading pages by a real browser: its process (`process.py`) and its only way out (`proxy.py`), what is done in a page
(`actions.py`, `evaluate.py`), one page read (`reader.py`), the calls that a page makes (`api_calls.py`,
`discover_router.py`), and sessions that a caller keeps open (`sessions.py`, `survey.py`, `router.py`).
"""
