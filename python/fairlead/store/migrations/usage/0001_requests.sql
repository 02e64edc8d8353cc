-- Facts: one row per settled request, appended and never changed. Columns are the fields of the spool's lines.

CREATE TABLE requests (
    request_id VARCHAR NOT NULL,
    ts_ms BIGINT NOT NULL,
    worker_id VARCHAR NOT NULL,
    principal_kind VARCHAR NOT NULL,
    key_id VARCHAR,
    session_tag VARCHAR,
    endpoint VARCHAR NOT NULL,
    method VARCHAR NOT NULL,
    path VARCHAR NOT NULL,
    model VARCHAR,
    provider VARCHAR,
    connection_id VARCHAR,
    upstream_model VARCHAR,
    stream BOOLEAN NOT NULL,
    status INTEGER NOT NULL,
    outcome VARCHAR NOT NULL,
    error_kind VARCHAR,
    tokens_input BIGINT NOT NULL,
    tokens_output BIGINT NOT NULL,
    tokens_cached BIGINT NOT NULL,
    tokens_reasoning BIGINT NOT NULL,
    tokens_cache_write BIGINT NOT NULL,
    cost_usd_micros BIGINT NOT NULL,
    latency_ms DOUBLE NOT NULL,
    ttft_ms DOUBLE,
    attempts INTEGER NOT NULL,
    bytes_request BIGINT NOT NULL,
    bytes_response BIGINT NOT NULL,
    no_log BOOLEAN NOT NULL
);

-- Which segments are in `requests`. A name is needed until its file is deleted, which follows the commit.
CREATE TABLE segments (name VARCHAR NOT NULL, ingested_at_ms BIGINT NOT NULL);
