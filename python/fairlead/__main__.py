"""Runs the command line for `python -m fairlead`."""

from __future__ import annotations

from fairlead.cli import main

if __name__ == "__main__":
    main()
