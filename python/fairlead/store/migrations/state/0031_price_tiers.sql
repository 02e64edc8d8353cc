-- Prices of what is written to a provider's cache for an hour, micro-dollars per million tokens, and prices that hold for long
-- inputs or in other service tiers, as JSON: a list of `{"service", "above", "input", ...}`.

ALTER TABLE price_overrides ADD COLUMN cache_write_hour BIGINT;
ALTER TABLE price_overrides ADD COLUMN tiers VARCHAR;

-- What becomes of calls to models without a price where the key has a limit in dollars: `allow` or `refuse`; null: as the
-- settings say.
ALTER TABLE keys ADD COLUMN unpriced_models VARCHAR;
