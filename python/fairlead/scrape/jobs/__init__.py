"""Jobs: a list of pages to read that grows as it is read, kept in the state database.

`table.py` is what is stored, `frontier.py` which links are followed, `runner.py` what works on it,
`hook.py` whom it tells. A page counts once its row is stored; a process that dies takes up where the
rows end.
"""
