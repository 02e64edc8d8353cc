-- Jobs of the generative service that say themselves who is told of them, and the keys that those deliveries are signed with.

CREATE TABLE service_jobs (
    id VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    has_own_listeners BOOLEAN NOT NULL,
    user_metadata VARCHAR,
    created_at_ms BIGINT NOT NULL,
    ended_at_ms BIGINT
);

-- The private half is sealed with its id; the public half is a JWK.
CREATE TABLE webhook_signing_keys (
    id VARCHAR NOT NULL,
    sealed BLOB NOT NULL,
    public_jwk VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL
);
