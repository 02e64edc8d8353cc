-- Outbound proxies by level (`global`, `provider`, `combo`, `key`): `target` is what one is set for, empty for all. With the scheme
-- `direct` the level says that no proxy is used. The login is sealed with `<level>:<target>`.

CREATE TABLE outbound_proxies (
    level VARCHAR NOT NULL,
    target VARCHAR NOT NULL,
    scheme VARCHAR NOT NULL,
    host VARCHAR NOT NULL,
    port INTEGER NOT NULL,
    login_sealed BLOB
);

-- Which proxy the relay chose for a video: asking for it goes the same way.
ALTER TABLE video_operations ADD COLUMN proxy VARCHAR;

-- From where a key may be used, as addresses and networks; empty for everywhere.
ALTER TABLE keys ADD COLUMN ip_allowlist VARCHAR[] DEFAULT [];

-- Sign-in at providers. A client of the operator's own, with addresses where the provider's file has none; JSON text. Secrets are
-- sealed, with the provider's id here and with the connection's below.
CREATE TABLE provider_clients (
    provider VARCHAR NOT NULL,
    section VARCHAR NOT NULL,
    secret_sealed BLOB
);

-- The sign-in behind a connection: its refresh token, and when it is used next. The access token is the connection's credential.
CREATE TABLE provider_sign_ins (
    connection_id VARCHAR NOT NULL,
    provider VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    refresh_sealed BLOB,
    expires_at_ms BIGINT,
    refreshed_at_ms BIGINT NOT NULL,
    next_at_ms BIGINT,
    failures INTEGER NOT NULL,
    last_error VARCHAR
);

-- Sign-ins that somebody has begun. `id` is the hash of the state; the verifier or device code is sealed with it.
CREATE TABLE provider_sign_in_flows (
    id VARCHAR NOT NULL,
    provider VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    connection_id VARCHAR,
    name VARCHAR,
    secret_sealed BLOB NOT NULL,
    redirect_uri VARCHAR,
    interval_ms BIGINT,
    asked_at_ms BIGINT,
    expires_at_ms BIGINT NOT NULL
);
