"""Jobs: lists of pages to read that grow as they are read, kept in the state database.

`table.py` has the rows, `start.py` stores a new job, `frontier.py` decides which links are followed, `runner.py`
runs every job, `pages_run.py` reads the pages of one, `extraction.py` asks a model about them, `completion.py` ends
a job and `listener.py` notifies its webhook. `view.py`, `events.py` and `download.py` show a job; `estimate.py`
forecasts a crawl. Routes: `crawl_router.py`, `batch_router.py`, `pages_router.py` (what both share),
`extract_router.py`, `llmstxt_router.py` with `llmstxt.py`.

A page counts once its row is stored; after a crash a job continues after its last row.
"""
