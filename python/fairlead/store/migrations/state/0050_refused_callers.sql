-- Requests that the gate refused because of who called or from where: counts by minute, address, route and reason, as each relay
-- worker reports them. A request without a known key has no record of usage.

CREATE TABLE refused_callers (
    worker_id VARCHAR NOT NULL,
    minute_ms BIGINT NOT NULL,
    address VARCHAR,
    method VARCHAR NOT NULL,
    path VARCHAR NOT NULL,
    status INTEGER NOT NULL,
    kind VARCHAR NOT NULL,
    message VARCHAR NOT NULL,
    requests BIGINT NOT NULL
);
