"""The addresses of a site: `sitemap.py` (from its sitemaps), `cache.py` (maps that are kept), `router.py` (the
routes).
"""
