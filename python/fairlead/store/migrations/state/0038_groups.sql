-- Groups of keys, three levels of them: what one sets holds for every key in it and in the groups below it. Members are users who
-- see and make keys of their group.

CREATE TABLE key_groups (
    id VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    name VARCHAR NOT NULL,
    parent_id VARCHAR,
    is_active BOOLEAN NOT NULL,
    tags VARCHAR[] NOT NULL,
    model_access_mode VARCHAR NOT NULL,
    allowed_models VARCHAR[] NOT NULL,
    blocked_models VARCHAR[] NOT NULL,
    allowed_combos VARCHAR[] NOT NULL,
    connection_access_mode VARCHAR NOT NULL,
    allowed_connections VARCHAR[] NOT NULL,
    guardrails VARCHAR NOT NULL,
    rate_limits VARCHAR,
    token_limits VARCHAR,
    daily_usage_limit_usd_micros BIGINT,
    weekly_usage_limit_usd_micros BIGINT,
    monthly_usage_limit_usd_micros BIGINT,
    usage_limit_tz VARCHAR NOT NULL,
    usage_alert_percents INTEGER[] NOT NULL
);

CREATE TABLE key_group_members (
    group_id VARCHAR NOT NULL,
    user_id VARCHAR NOT NULL,
    role VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL
);

ALTER TABLE keys ADD COLUMN group_id VARCHAR;
ALTER TABLE keys ADD COLUMN tags VARCHAR[] DEFAULT [];
ALTER TABLE keys ADD COLUMN made_by VARCHAR;

-- An alert is of a key's budget or of a group's.
ALTER TABLE budget_alerts RENAME COLUMN key_id TO owner_id;

-- The one mail server, its password sealed, and mails until they are sent or given up.
CREATE TABLE mail_server (
    host VARCHAR NOT NULL,
    port INTEGER NOT NULL,
    tls VARCHAR NOT NULL,
    username VARCHAR,
    password_sealed BLOB,
    sender VARCHAR NOT NULL,
    recipients VARCHAR[] NOT NULL,
    events VARCHAR[] NOT NULL,
    updated_at_ms BIGINT NOT NULL
);

CREATE TABLE mails (
    id VARCHAR NOT NULL,
    event VARCHAR NOT NULL,
    subject VARCHAR NOT NULL,
    body VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    tries INTEGER NOT NULL,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    next_attempt_at_ms BIGINT NOT NULL,
    finished_at_ms BIGINT,
    error VARCHAR
);
