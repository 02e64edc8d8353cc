-- What a call's cost is by: tokens that a provider's cache keeps for an hour, the service tier that the provider says it served
-- in, and which of the model's prices applied (`flex,above_272000,cached_input`).

ALTER TABLE requests ADD COLUMN tokens_cache_write_hour BIGINT;
ALTER TABLE requests ADD COLUMN service_tier VARCHAR;
ALTER TABLE requests ADD COLUMN price_tiers VARCHAR;
