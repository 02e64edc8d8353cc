"""The routing gateway's management: one package per resource, each with its record, its table and
its router.
"""
