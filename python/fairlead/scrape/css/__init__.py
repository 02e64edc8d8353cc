"""Records of a page by CSS selectors that are found again when the page has changed.

`schema.py` has the requested fields and their positions, `heal.py` requests selectors from a model,
`records.py` decides which selectors are used, `table.py` stores them, `router.py` has the route. `page/css.py`
runs the selectors.
"""
