-- How calls are shared among connections of one priority, and what each of them takes. Null is no limit.

ALTER TABLE provider_connections ADD COLUMN weight INTEGER DEFAULT 1;
ALTER TABLE provider_connections ADD COLUMN requests_per_minute INTEGER;
ALTER TABLE provider_connections ADD COLUMN tokens_per_minute BIGINT;
ALTER TABLE provider_connections ADD COLUMN min_gap_ms INTEGER;
ALTER TABLE provider_connections ADD COLUMN queue_depth INTEGER;
ALTER TABLE provider_connections ADD COLUMN queue_timeout_ms INTEGER;
