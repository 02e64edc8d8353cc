"""Documents as markdown: which kind one is (`kinds.py`), how each is read (`read.py`), the archives of office programs
under caps (`archive.py`, `docx.py`, `xlsx.py`), and the route (`router.py`). Reading runs in the processes of
`page/pool.py`.
"""
