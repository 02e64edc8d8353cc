-- What providers' own usage routes say of connections: figures as JSON, and when they were read. `key_sealed` is a key that such a
-- route asks for in place of the connection's own.

CREATE TABLE provider_usage (
    connection_id VARCHAR NOT NULL,
    key_sealed BLOB,
    figures VARCHAR NOT NULL,
    read_at_ms BIGINT,
    asked_at_ms BIGINT,
    failures INTEGER NOT NULL,
    last_error VARCHAR
);
