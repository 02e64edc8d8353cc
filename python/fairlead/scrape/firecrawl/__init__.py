"""Firecrawl's API, version 2, as another form of the scraping API: nothing is read, crawled or found here.

`requests.py` has the bodies, `options.py` translates the options of a page and `formats.py` its formats; `document.py`
writes a page as Firecrawl's clients expect it. Routes: `page_router.py` (scrape, map, search), `parse_router.py`,
`jobs_router.py` (crawl, batch) and `extract_router.py`.

Options that are not served are passed over. The answer names them in `warning`.
"""
