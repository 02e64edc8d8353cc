-- Files that callers keep here, and batches that run over them. Contents lie in the folder `files`, under the file's id;
-- what a batch has done so far lies in the folder `batches`.

CREATE TABLE files (
    id VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    purpose VARCHAR NOT NULL,
    file_name VARCHAR NOT NULL,
    bytes BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT
);

CREATE TABLE batches (
    id VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    endpoint VARCHAR NOT NULL,
    input_file_id VARCHAR NOT NULL,
    metadata VARCHAR,
    output_expires_after_s BIGINT,
    status VARCHAR NOT NULL,
    model VARCHAR,
    errors VARCHAR,
    output_file_id VARCHAR,
    error_file_id VARCHAR,
    total INTEGER NOT NULL,
    completed INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    tokens_input BIGINT NOT NULL,
    tokens_output BIGINT NOT NULL,
    tokens_cached BIGINT NOT NULL,
    tokens_reasoning BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    in_progress_at_ms BIGINT,
    finalizing_at_ms BIGINT,
    cancelling_at_ms BIGINT,
    ended_at_ms BIGINT
);

-- Search engines that callers reach through the gateway.
CREATE TABLE search_providers (
    id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    base_url VARCHAR NOT NULL,
    key_sealed BLOB,
    priority INTEGER NOT NULL,
    is_active BOOLEAN NOT NULL,
    created_at_ms BIGINT NOT NULL
);
