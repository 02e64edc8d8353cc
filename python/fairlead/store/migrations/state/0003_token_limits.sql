-- How many tokens a key may use in each period, in all or on one model or provider.

CREATE TABLE token_limits (
    id VARCHAR NOT NULL,
    key_id VARCHAR NOT NULL,
    scope_type VARCHAR NOT NULL,
    scope_value VARCHAR,
    token_limit BIGINT NOT NULL,
    reset_interval VARCHAR NOT NULL,
    reset_minute INTEGER NOT NULL,
    enabled BOOLEAN NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL
);
