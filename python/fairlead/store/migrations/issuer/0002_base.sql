-- Clients of the token issuer, and their access tokens.
CREATE TABLE meta (
    name VARCHAR NOT NULL,
    value VARCHAR NOT NULL
);

-- `key` is new for each registration, and tokens refer to it: a client id that is registered again does not get the tokens of the
-- earlier client.
CREATE TABLE clients (
    key VARCHAR NOT NULL,
    client_id VARCHAR NOT NULL,
    secret_hash VARCHAR NOT NULL,     -- keyed, hex
    fields VARCHAR NOT NULL,          -- JSON: the registration, without the secret
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL
);

CREATE TABLE tokens (
    hash VARCHAR NOT NULL,            -- SHA-256 of the token's text, hex
    client_key VARCHAR NOT NULL,
    scope VARCHAR NOT NULL,
    issued_at_s BIGINT NOT NULL,
    expires_at_s BIGINT NOT NULL,
    -- The requested audience, separated by spaces; empty for the audience of the client.
    audience VARCHAR DEFAULT ''
);
