"""The console: pages for people who run the gateway.

A page is a module in `pages/` that names itself in `PAGES`; `registry.py` collects them. Pages read and
change nothing by themselves: they call the routes of the API (`api.py`) as the person who is signed in, so
whatever a page can do, everybody's programs can.
"""
