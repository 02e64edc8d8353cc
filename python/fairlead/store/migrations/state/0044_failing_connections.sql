-- Connections that listeners were told to fail, and since when: whichever control finds that one serves again says so.

CREATE TABLE failing_connections (
    connection_id VARCHAR NOT NULL,
    since_ms BIGINT NOT NULL
);
