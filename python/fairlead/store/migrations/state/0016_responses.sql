-- Responses that callers asked to be kept, for those who go on from them. `input` is the list of what this request itself said;
-- what came before it stands in `previous_id`. Both texts are JSON.

CREATE TABLE responses (
    id VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    previous_id VARCHAR,
    model VARCHAR NOT NULL,
    input VARCHAR NOT NULL,
    response VARCHAR NOT NULL,
    size_bytes BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL
);
