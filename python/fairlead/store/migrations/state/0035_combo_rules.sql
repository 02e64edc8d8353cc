-- Rules of combos, their order, and the patterns of models that lead to combos. Rules are JSON text by the names of the API.

ALTER TABLE combos ADD COLUMN rules VARCHAR DEFAULT '{}';
ALTER TABLE combos ADD COLUMN sort_order INTEGER DEFAULT 0;
UPDATE combos SET rules = '{}', sort_order = 0;

CREATE TABLE model_combo_mappings (
    id VARCHAR NOT NULL,
    pattern VARCHAR NOT NULL,
    combo_id VARCHAR NOT NULL,
    priority INTEGER NOT NULL,
    is_enabled BOOLEAN NOT NULL,
    description VARCHAR,
    created_at_ms BIGINT NOT NULL
);
