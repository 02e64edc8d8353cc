"""Gateway API keys: the permissions record, where it is kept, its routes, and what the relay gets
of it.
"""
