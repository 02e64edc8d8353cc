"""The state database on PostgreSQL, for several control processes.

* `statements.py`: what differs from DuckDB, in statements and migrations, each with its reason; `functions.sql` and
  `indexes.sql` go with it.
* `connection.py`: a transaction, as the tables' functions use it.
* `schema.py`: the first connection, migrations.
* `engine.py`: the pool behind a `Database`, and what is tried again.
* `channels.py`: what the controls of one database tell each other, by LISTEN and NOTIFY.
* `locks.py`: work that one of them does for all.
* `nodes.py`: which of them live, and which snapshot each has applied.
"""
