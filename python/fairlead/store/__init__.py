"""Storage: two DuckDB files with their migrations, sealed secrets, operator settings.

For routers and background tasks, in this order:

* `services.py`: `services: ServicesDep` gives `services.state`, `services.usage`, `services.config`, ...
* `state.py`: `await state.commit(transaction)` and `await state.read(transaction)`; a commit returns once it is in
  force in every worker.
* `database.py`: the writer and readers beneath both, and the class of `services.usage`.
"""
