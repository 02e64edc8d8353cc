-- Clients of the token issuer and the access tokens they were given.
--
-- A token row binds to `key`, which is new whenever a client is made: a client id that is registered anew does not take
-- over what an earlier bearer of the name was given.
CREATE TABLE meta (
    name VARCHAR NOT NULL,
    value VARCHAR NOT NULL
);

CREATE TABLE clients (
    key VARCHAR NOT NULL,
    client_id VARCHAR NOT NULL,
    secret_hash VARCHAR NOT NULL,     -- keyed, hex
    fields VARCHAR NOT NULL,          -- JSON: what was registered, without the secret
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL
);

CREATE TABLE tokens (
    hash VARCHAR NOT NULL,            -- SHA-256 of the token's text, hex
    client_key VARCHAR NOT NULL,
    scope VARCHAR NOT NULL,
    issued_at_s BIGINT NOT NULL,
    expires_at_s BIGINT NOT NULL
);
