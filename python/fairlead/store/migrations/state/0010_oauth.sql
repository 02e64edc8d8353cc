-- The authorization server for tool clients. Codes and tokens are kept as SHA-256 only.

CREATE TABLE oauth_clients (
    id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    redirect_uri VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL,
    approved_at_ms BIGINT
);

-- What one person approved for one client; its tokens live and end with it.
CREATE TABLE oauth_grants (
    id VARCHAR NOT NULL,
    client_id VARCHAR NOT NULL,
    user_id VARCHAR NOT NULL,
    resource VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL
);

CREATE TABLE oauth_codes (
    hash VARCHAR NOT NULL,
    grant_id VARCHAR NOT NULL,
    client_id VARCHAR NOT NULL,
    user_id VARCHAR NOT NULL,
    redirect_uri VARCHAR NOT NULL,
    challenge VARCHAR NOT NULL,
    resource VARCHAR NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    is_spent BOOLEAN NOT NULL
);

-- Access tokens have no generation. A refresh token is rotated once its grant has the next generation, so a rotation only
-- adds rows. Rotated ones stay until they expire: whoever shows one again ends its grant.
CREATE TABLE oauth_tokens (
    hash VARCHAR NOT NULL,
    grant_id VARCHAR NOT NULL,
    generation INTEGER,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL
);
