"""Reading the web: scrape, crawl, map, search, extract, summarize.

In the order in which a page is read: `address.py` (which addresses are accepted), `fetch/` (a page over HTTP),
`browser/` (a page by a real browser), `page/` and `document/` (its content), `scraper.py` (one scrape, with
`cache.py` and `change_tracking.py`). Then the uses of pages: `model/` (calling a model), `css/` (records by
selectors), `map/` (a site's addresses), `jobs/` (many pages, surviving restarts), `agent/` (a model in a
browser), `saved/` (saved calls). The API: `requests/` (bodies), `limits/` (who may call, how often), `calls.py`
(calls that routes share), `router.py` and `search_router.py` (routes without a folder), `routers.py` (all of
them), `openapi.py` (their description), `tasks.py` (background work).
"""
