-- Calls in the present minute, where several nodes count together.
CREATE TABLE call_windows (
    name VARCHAR NOT NULL PRIMARY KEY,
    begun_at_ms BIGINT NOT NULL,
    calls INTEGER NOT NULL
);
