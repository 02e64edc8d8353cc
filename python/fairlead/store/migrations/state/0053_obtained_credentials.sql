-- When the credentials that the gateway obtains from a cloud or from its machine end. The credentials themselves are sealed in their
-- connections.
CREATE TABLE obtained_credentials (
    connection_id VARCHAR NOT NULL,
    revision BIGINT NOT NULL,
    expires_at_ms BIGINT,
    obtained_at_ms BIGINT,
    next_at_ms BIGINT,
    failures INTEGER NOT NULL,
    last_error VARCHAR
);
