-- Pipelines of an operator's own, the routing combos that they are for, and filters for outputs of commands.

CREATE TABLE context_pipelines (
    id VARCHAR NOT NULL PRIMARY KEY,
    name VARCHAR NOT NULL UNIQUE,
    description VARCHAR NOT NULL,
    stages VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL
);

-- A routing combo has one pipeline or none.
CREATE TABLE context_assignments (
    combo_id VARCHAR NOT NULL PRIMARY KEY,
    pipeline_id VARCHAR NOT NULL
);

CREATE TABLE output_filters (
    sha256 VARCHAR NOT NULL PRIMARY KEY,
    toml VARCHAR NOT NULL,
    position INTEGER NOT NULL
);
