-- The log of usage that the nodes share: settled records as they stand in the segments of spools, each segment once.
-- `usage_log` has one row; whoever appends holds it until its COMMIT, so that positions have no holes and nobody who
-- reads on from a position can miss an earlier one. Partitions are days of the server's clock, made when a segment
-- comes and dropped when usage is kept no longer.

CREATE TABLE IF NOT EXISTS usage_log (log_id VARCHAR COLLATE "C" NOT NULL, position BIGINT NOT NULL);
INSERT INTO usage_log (log_id, position) SELECT gen_random_uuid()::VARCHAR, 0 WHERE NOT EXISTS (SELECT 1 FROM usage_log);

CREATE TABLE IF NOT EXISTS usage_segments (
    day DATE NOT NULL,
    position BIGINT NOT NULL,
    name VARCHAR COLLATE "C" NOT NULL,
    records INTEGER NOT NULL,
    added_at_ms BIGINT NOT NULL,
    data BYTEA NOT NULL
) PARTITION BY RANGE (day);
-- Its lines are compressed by who appends them.
ALTER TABLE usage_segments ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE INDEX IF NOT EXISTS usage_segments_position ON usage_segments (position);
CREATE INDEX IF NOT EXISTS usage_segments_name ON usage_segments (name);
