"""Documents as markdown: which kind one is (`kinds`), how each is read (`read`), the archives of office
programs under caps (`archive`, `docx`, `xlsx`), and the route. Reading runs in the processes of `page.pool`.
"""
