"""Who may call the scraping API, and how often: `owner.py` (the calling key, its calls in a minute), `quota.py`
(its calls in a day).
"""
