"""From the spool into the database: read, checked, stored and deleted when their time is over."""
