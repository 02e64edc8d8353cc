"""Token limits of keys: how many tokens in each day, week or month."""
