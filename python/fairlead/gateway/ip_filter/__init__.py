"""Get the allowed and blocked client addresses."""
