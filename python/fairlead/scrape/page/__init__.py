"""What a page holds: pure functions from bytes to content, run in processes of their own.

The processes: `pool.py` (starts and asks them), `worker.py` (what runs in them), `fair_queue.py` (whose turn it
is). What they do: `extract.py` (a page's document), with `charset.py`, `metadata.py`, `links.py`, `contacts.py`,
`fence.py`; `css.py` and `outline.py` (records by selectors); `sitemap.py`; `schema.py` (a caller's JSON Schema) and
`patterns.py` (a caller's regular expressions).
"""
