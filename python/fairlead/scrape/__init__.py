"""Reading the web: scrape, crawl, map, search, extract, summarize.

Read in this order: `address.py`, `fetch.py` and `manners.py` (how a page is got), `page/` (what it
holds), `options.py` and `scraper.py` (one scrape), `jobs/` (many, surviving restarts), `model.py`
(asking a model), `css/` (records by selectors), `saved/` (calls under a name), `agent/` (a model in a
browser), `document/` (files as markdown), `router.py` and its neighbours (the wire).
"""
