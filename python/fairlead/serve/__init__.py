"""The supervisor: `fairlead serve` becomes it, starts the two planes and keeps them running.

    supervisor            small, no database, no engine; owns the data directory's lock and the port
    +-- control           granian, answers on a Unix socket
    +-- relay             granian or the engine's own listener, answers on the port
    +-- stand-in          with --demo only

Each child has its own session, so that Ctrl-C in a terminal reaches the supervisor alone, and is tethered to
its parent, so that none outlives it (`tether`).
"""
