"""What fairlead keeps: two DuckDB files, their migrations, sealed secrets, operator settings.

For routers and background tasks, in this order:

* `services.py`: `services: ServicesDep` gives `services.state`, `services.usage`,
  `services.config`, ...
* `state.py`: `await state.commit(work)` and `await state.read(work)`; a commit returns when it is
  in force everywhere.
* `database.py`: what both stand on, and what `services.usage` is.
"""
