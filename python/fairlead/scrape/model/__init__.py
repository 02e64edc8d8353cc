"""Calling a model about a page: `extract.py` (data by schema, summaries), `schema.py` (a caller's JSON Schema),
`confidence.py` (how much of the data occurs in the page), `untrusted.py` (pages in prompts, links in answers).
"""
