"""Sign-in at providers by OAuth: tokens instead of keys, refreshed before they end."""
