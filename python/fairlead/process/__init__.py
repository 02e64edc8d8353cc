"""The process on its machine: how it may start, files, threads, the environment and optional parts."""
