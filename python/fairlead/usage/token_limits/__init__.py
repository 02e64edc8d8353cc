"""Token limits of keys: tokens per day, week or month."""
