"""The control plane: management and identity behind the relay, on a Unix socket of its own.

Read in this order: `app.py` (what is started and stopped), `gate.py` (who may speak to it),
`link.py` and `publisher.py` (how a change comes into force), `snapshot.py` (what the relay gets),
`routers.py` and `tasks.py` (what is served and done, imported when it is needed), `openapi.py`.
"""
