-- What an operator says of a provider's models: custom ones, and what is overridden of the others. `settings` is JSON text.

CREATE TABLE provider_models (
    provider VARCHAR NOT NULL,
    model_id VARCHAR NOT NULL,
    is_custom BOOLEAN NOT NULL,
    settings VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL
);
