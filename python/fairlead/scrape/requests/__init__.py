"""Request bodies of the scraping API, field by field: `fields.py` (their base and the types of fields), `page.py`
(one page), `browser.py` (sessions and API discovery), `jobs.py` (jobs), `site.py` (maps, searches, saved endpoints).
"""
