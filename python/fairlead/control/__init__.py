"""The control plane: management and identity behind the relay, on a Unix socket.

Read in this order: `app.py` (start and stop), `gate.py` (authentication of the relay), `link.py` and
`publisher.py` (how a change comes into force), `snapshot.py` (the relay's configuration), `routers.py` and
`tasks.py` (tables of routes and background tasks, imported on demand), `openapi.py`.
"""
