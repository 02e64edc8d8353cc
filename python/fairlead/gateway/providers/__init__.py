"""Provider connections: the catalogue, the record, where it is kept, its test and routes, and what
the relay gets of it.
"""
