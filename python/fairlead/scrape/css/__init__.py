"""Records of a page by CSS selectors that are found again when the page has changed.

`schema.py` is what is asked for and where it stands, `heal.py` asks a model for selectors, `records.py` decides whose
selectors are used, `table.py` keeps what was found, `router.py` has the route. `page/css.py` runs the selectors.
"""
