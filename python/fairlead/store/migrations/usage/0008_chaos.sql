-- Which fault a call was given on purpose; when each key was last used, which outlives the requests themselves.

ALTER TABLE requests ADD COLUMN chaos VARCHAR;

CREATE TABLE key_uses (
    key_id VARCHAR PRIMARY KEY,
    last_used_ms BIGINT NOT NULL
);
INSERT INTO key_uses SELECT key_id, max(ts_ms) FROM requests WHERE key_id IS NOT NULL GROUP BY key_id;
