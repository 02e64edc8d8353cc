"""The state database on PostgreSQL, for several control processes.

* `statements.py`: what differs from DuckDB, in statements and migrations, each with its reason; `functions.sql` and
  `indexes.sql` go with it.
* `connection.py`: a transaction, as the tables' functions use it.
* `schema.py`: the first connection, migrations.
* `engine.py`: the pool behind a `Database`, and what is tried again.
* `nodes.py`: the controls of one database: who lives, which snapshot each has applied.
* `watch.py`: what they tell each other, by LISTEN and NOTIFY.
* `locks.py`: work that one of them does for all.
"""
