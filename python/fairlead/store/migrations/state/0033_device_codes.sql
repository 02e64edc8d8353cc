-- Sign-ins by device code that nobody has finished (RFC 8628). Both codes are kept as SHA-256 only. `is_approved` is null until
-- a person has decided; an approved one is deleted with the poll that takes its token.

CREATE TABLE oauth_device_codes (
    hash VARCHAR NOT NULL,
    user_hash VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    scope VARCHAR NOT NULL,
    address VARCHAR NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    user_id VARCHAR,
    is_approved BOOLEAN
);
