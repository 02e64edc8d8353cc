"""Records that several rooms read and write, one file for each kind."""
