-- Times are UTC milliseconds, money is integer micro-dollars, lists of structures are JSON text.

CREATE TABLE meta (name VARCHAR NOT NULL, value VARCHAR NOT NULL);

CREATE TABLE operator_settings (name VARCHAR NOT NULL, value VARCHAR NOT NULL);

CREATE TABLE sessions (
    hash VARCHAR NOT NULL,
    user_id VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL
);

CREATE TABLE keys (
    id VARCHAR NOT NULL,
    hash VARCHAR NOT NULL,
    preview VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    name VARCHAR NOT NULL,
    is_active BOOLEAN NOT NULL,
    is_banned BOOLEAN NOT NULL,
    expires_at_ms BIGINT,
    model_access_mode VARCHAR NOT NULL,
    allowed_models VARCHAR[] NOT NULL,
    blocked_models VARCHAR[] NOT NULL,
    allowed_combos VARCHAR[] NOT NULL,
    connection_access_mode VARCHAR NOT NULL,
    allowed_connections VARCHAR[] NOT NULL,
    allow_auto_combos BOOLEAN NOT NULL,
    catalog_scope VARCHAR NOT NULL,
    forced_model VARCHAR,
    no_log BOOLEAN NOT NULL,
    auto_resolve BOOLEAN NOT NULL,
    throttle_delay_ms INTEGER NOT NULL,
    max_sessions INTEGER NOT NULL,
    rate_limits VARCHAR,
    access_schedule VARCHAR,
    scopes VARCHAR[] NOT NULL,
    allowed_endpoints VARCHAR[] NOT NULL,
    stream_default_mode VARCHAR NOT NULL,
    cache_default_mode VARCHAR NOT NULL,
    compression_enabled BOOLEAN NOT NULL,
    tool_service_mode VARCHAR NOT NULL,
    disable_non_public_models BOOLEAN NOT NULL,
    allow_usage_command BOOLEAN NOT NULL,
    usage_limit_enabled BOOLEAN NOT NULL,
    chaos_mode_enabled BOOLEAN NOT NULL,
    daily_usage_limit_usd_micros BIGINT,
    weekly_usage_limit_usd_micros BIGINT
);
