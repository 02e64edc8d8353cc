-- Names that stand for more than one model, and names that stand for another. Steps and parameters are JSON text.

CREATE TABLE combos (
    id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    description VARCHAR,
    strategy VARCHAR NOT NULL,
    steps VARCHAR NOT NULL,
    config VARCHAR NOT NULL,
    is_active BOOLEAN NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL
);

CREATE TABLE model_aliases (
    alias VARCHAR NOT NULL,
    target VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL
);
