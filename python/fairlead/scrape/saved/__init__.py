"""Calls saved under a name, with parameters in their address: endpoints (a scrape, or an extraction by a model) and
sites (records by selectors that heal). `table.py` keeps both, `template.py` fills addresses, `site.py` runs a site,
`endpoint_router.py` and `site_router.py` have the routes.
"""
