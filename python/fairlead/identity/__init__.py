"""Who may sign in: the password, sessions, the local command-line token, and the limit on
guessing.
"""
