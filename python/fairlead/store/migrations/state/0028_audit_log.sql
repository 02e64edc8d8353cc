-- Changes through the management API: who asked, from where, and what for. `sent` and `before` are JSON with secrets masked; ids
-- grow with time, so that a page is read by id.

CREATE TABLE audit_log (
    id VARCHAR NOT NULL,
    at_ms BIGINT NOT NULL,
    request_id VARCHAR NOT NULL,
    actor_kind VARCHAR NOT NULL,
    actor_id VARCHAR,
    actor_name VARCHAR,
    peer VARCHAR NOT NULL,
    method VARCHAR NOT NULL,
    path VARCHAR NOT NULL,
    route VARCHAR NOT NULL,
    outcome VARCHAR NOT NULL,
    status INTEGER,
    sent VARCHAR,
    before VARCHAR
);
