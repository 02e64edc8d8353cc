-- Who may sign in. Secrets are hashed, or sealed with the row's id.

CREATE TABLE users (
    id VARCHAR NOT NULL,
    email VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    role VARCHAR NOT NULL,
    is_active BOOLEAN NOT NULL,
    password_hash VARCHAR,
    totp_sealed BLOB,
    totp_pending_sealed BLOB,
    totp_last_step BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL
);

-- The one operator there was becomes the owner.
INSERT INTO users
SELECT
    coalesce((SELECT value FROM meta WHERE name = 'operator_id'), CAST(uuid() AS VARCHAR)),
    'owner@localhost', 'Owner', 'owner', true,
    (SELECT value FROM meta WHERE name = 'password_hash'),
    NULL, NULL, 0, epoch_ms(now()), epoch_ms(now())
WHERE EXISTS (SELECT 1 FROM meta WHERE name IN ('operator_id', 'password_hash'));

DELETE FROM meta WHERE name IN ('operator_id', 'password_hash');

CREATE TABLE oidc_identities (
    issuer VARCHAR NOT NULL,
    subject VARCHAR NOT NULL,
    user_id VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL
);

CREATE TABLE recovery_codes (
    user_id VARCHAR NOT NULL,
    hash VARCHAR NOT NULL
);

CREATE TABLE login_challenges (
    user_id VARCHAR NOT NULL,
    hash VARCHAR NOT NULL,
    attempts INTEGER NOT NULL,
    expires_at_ms BIGINT NOT NULL
);

CREATE TABLE management_tokens (
    id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    scope VARCHAR NOT NULL,
    hash VARCHAR NOT NULL,
    preview VARCHAR NOT NULL,
    created_by VARCHAR,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT
);

CREATE TABLE signed_in (
    id VARCHAR NOT NULL,
    hash VARCHAR NOT NULL,
    user_id VARCHAR NOT NULL,
    way VARCHAR NOT NULL,
    peer VARCHAR NOT NULL,
    user_agent VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL
);

INSERT INTO signed_in
SELECT CAST(uuid() AS VARCHAR), hash, user_id, 'password', '', '', created_at_ms, expires_at_ms
FROM sessions;

DROP TABLE sessions;

ALTER TABLE signed_in RENAME TO sessions;
