"""fairlead: one door for AI traffic."""

__version__ = "0.1.0"
