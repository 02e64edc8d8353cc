-- Connections that one session has to itself for a while. Rows that have expired say nothing, and the next lease deletes them.

CREATE TABLE session_leases (
    connection_id VARCHAR NOT NULL,
    key_id VARCHAR NOT NULL,
    owner_hash VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    generation BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL
);
