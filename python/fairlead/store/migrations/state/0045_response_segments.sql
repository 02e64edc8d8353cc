-- Segments of responses that were stored, so that one that is read a second time after a crash is not stored again. And
-- until which request of another control a control has stored what its relays had answered.

CREATE TABLE response_segments (
    name VARCHAR NOT NULL,
    stored_at_ms BIGINT NOT NULL
);

ALTER TABLE control_nodes ADD COLUMN responses_stored_until BIGINT DEFAULT 0;
