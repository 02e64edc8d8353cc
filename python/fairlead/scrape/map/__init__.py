"""The addresses of a site: `sitemap.py` (those that its sitemaps name), `discovery.py` (from sitemaps and links),
`cache.py` (maps that are kept), `router.py` (the routes).
"""
