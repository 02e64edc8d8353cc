-- Who answers model calls. Secrets are sealed with the row's id; structures are JSON text.

CREATE TABLE provider_nodes (
    id VARCHAR NOT NULL,
    type VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    prefix VARCHAR NOT NULL,
    api_type VARCHAR NOT NULL,
    base_url VARCHAR NOT NULL,
    chat_path VARCHAR,
    models_path VARCHAR,
    icon_url VARCHAR,
    headers_sealed BLOB,
    header_names VARCHAR NOT NULL,
    timeouts VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL
);

CREATE TABLE provider_connections (
    id VARCHAR NOT NULL,
    provider VARCHAR NOT NULL,
    auth_type VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    display_name VARCHAR,
    priority INTEGER NOT NULL,
    is_active BOOLEAN NOT NULL,
    default_model VARCHAR,
    max_concurrent INTEGER,
    provider_specific VARCHAR NOT NULL,
    credentials_sealed BLOB,
    api_key_tail VARCHAR,
    test_status VARCHAR,
    last_error VARCHAR,
    last_error_at_ms BIGINT,
    last_tested_at_ms BIGINT,
    models VARCHAR,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL
);
