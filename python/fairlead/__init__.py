"""fairlead: one gateway for AI traffic."""

__version__ = "0.1.0"
