"""Provider connections: the catalogue, the record and its table, the test, the routes, and their
part of the snapshot.
"""
