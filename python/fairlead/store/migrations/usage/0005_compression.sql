-- What was done to make a conversation shorter: tokens are those of its texts, the money is what the tokens that were left out
-- would have cost as input, and `rejected` says why texts stayed: `engine:reason=count`, separated by commas.

ALTER TABLE requests ADD COLUMN compression VARCHAR;
ALTER TABLE requests ADD COLUMN compression_tokens_before BIGINT;
ALTER TABLE requests ADD COLUMN compression_tokens_after BIGINT;
ALTER TABLE requests ADD COLUMN compression_ms DOUBLE;
ALTER TABLE requests ADD COLUMN compression_rejected VARCHAR;
ALTER TABLE requests ADD COLUMN compression_saved_usd_micros BIGINT;
