"""Identity: people who sign in (password, second factor, provider), sessions, tokens, and the
limits on guessing.
"""
