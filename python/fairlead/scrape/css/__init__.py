"""Records of a page by CSS selectors that are found again when the page has changed.

`schema.py` is what is asked for and where it stands, `heal.py` asks a model for selectors, `extraction.py` decides
whose selectors are used, `table.py` keeps what was found, `router.py` is the wire. Selectors themselves are run in
`page/css.py`.
"""
