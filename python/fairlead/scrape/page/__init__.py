"""Content extraction from pages: pure functions over bytes, run in worker processes.

The processes: `pool.py` (starts and calls them), `worker.py` (their main loop), `fair_queue.py` (fair
scheduling). The functions: `extract.py` (a page's document), with `charset.py`, `metadata.py`, `links.py`,
`contacts.py`, `fence.py`; `css.py` and `outline.py` (records by selectors); `sitemap.py`; `schema.py` (a
caller's JSON Schema) and `patterns.py` (a caller's regular expressions).
"""
