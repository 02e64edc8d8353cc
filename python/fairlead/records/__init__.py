"""Records that several packages read and write, one file for each kind."""
