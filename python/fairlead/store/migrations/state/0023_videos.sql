-- Videos that providers make: the provider's operation, which is asked until it has ended, what came of it, and where the
-- videos are read.

CREATE TABLE video_operations (
    id VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    connection_id VARCHAR NOT NULL,
    provider_operation VARCHAR NOT NULL,
    response VARCHAR,
    error VARCHAR,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    ended_at_ms BIGINT
);

CREATE TABLE video_files (
    id VARCHAR NOT NULL,
    operation_id VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    connection_id VARCHAR NOT NULL,
    uri VARCHAR NOT NULL
);
