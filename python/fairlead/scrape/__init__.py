"""Reading the web: scrape, crawl, map, search, extract, summarize.

In the order in which a page is read: `address.py` (which addresses are taken), `fetch/` (a page over HTTP), `browser/`
(a page by a real browser), `page/` and `document/` (what it holds), `scraper.py` (one scrape, with `cache.py` and
`change_tracking.py`). Then what is made of pages: `model/` (asking a model), `css/` (records by selectors), `map/` (a
site's addresses), `jobs/` (many pages, surviving restarts), `agent/` (a model in a browser), `saved/` (calls under a
name). The API: `requests/` (bodies), `limits/` (who may call, how often), `calls.py` (calls that routes share),
`router.py` and `search_router.py` (routes without a folder of their own), `routers.py` (all of them), `openapi.py`
(their description), `tasks.py` (what runs in the background).
"""
