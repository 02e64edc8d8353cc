"""Reading pages by a real browser: its process (`process`), what is done in a page (`steps`), one page
read (`reader`), and sessions that a caller keeps open (`sessions`, `router`).
"""
