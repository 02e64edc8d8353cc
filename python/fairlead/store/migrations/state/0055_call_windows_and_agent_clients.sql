-- Calls in the present minute, where several nodes count together.
CREATE TABLE call_windows (
    name VARCHAR NOT NULL PRIMARY KEY,
    begun_at_ms BIGINT NOT NULL,
    calls INTEGER NOT NULL
);

-- The clients of the issuer that may call an agent; without any, every client may.
ALTER TABLE agent_skills ADD COLUMN allowed_clients VARCHAR[] DEFAULT [];
