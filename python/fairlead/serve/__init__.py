"""The supervisor: `fairlead serve` starts the two planes and keeps them running.

    supervisor            small, no database, no engine; owns the data directory's lock and the port
    +-- control           granian main, its one worker answers on a Unix socket
    +-- relay             granian main, its workers answer on the port
    +-- stand-in          with --demo only

Each child has its own session, so that Ctrl-C in a terminal reaches the supervisor alone, and is tethered to
its parent, so that none outlives it (`tether`).
"""
