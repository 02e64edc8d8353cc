-- Who is told of events, what they are told, and how that went. Secrets are sealed with their own row's id.

CREATE TABLE webhook_endpoints (
    id VARCHAR NOT NULL,
    surface VARCHAR NOT NULL,
    owner VARCHAR,
    name VARCHAR,
    url VARCHAR NOT NULL,
    events VARCHAR[] NOT NULL,
    state VARCHAR NOT NULL,
    reason VARCHAR,
    failing_since_ms BIGINT,
    not_before_ms BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL
);

CREATE TABLE webhook_secrets (
    id VARCHAR NOT NULL,
    endpoint_id VARCHAR NOT NULL,
    sealed BLOB NOT NULL,
    tail VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT
);

-- The outbox: a message is the exact body, a delivery is one message on its way to one endpoint.
CREATE TABLE webhook_messages (
    id VARCHAR NOT NULL,
    event VARCHAR NOT NULL,
    body VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL
);

CREATE TABLE webhook_deliveries (
    id VARCHAR NOT NULL,
    endpoint_id VARCHAR NOT NULL,
    message_id VARCHAR NOT NULL,
    event VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    attempts INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    next_attempt_at_ms BIGINT NOT NULL,
    finished_at_ms BIGINT,
    status INTEGER,
    error VARCHAR,
    latency_ms DOUBLE
);

CREATE TABLE webhook_attempts (
    delivery_id VARCHAR NOT NULL,
    endpoint_id VARCHAR NOT NULL,
    number INTEGER NOT NULL,
    at_ms BIGINT NOT NULL,
    latency_ms DOUBLE NOT NULL,
    status INTEGER,
    error VARCHAR
);
