-- What was seen of connections and must outlive a worker, and what an operator has had forgotten.

CREATE TABLE connection_states (
    connection_id VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    reason VARCHAR,
    until_ms BIGINT,
    since_ms BIGINT NOT NULL
);

CREATE TABLE resilience_clears (
    number BIGINT NOT NULL,
    provider VARCHAR,
    connection VARCHAR,
    model VARCHAR,
    at_ms BIGINT NOT NULL
);
