-- Prices that the operator set instead of those that are known: micro-dollars per million tokens, for a provider's model.

CREATE TABLE price_overrides (
    provider VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    input BIGINT NOT NULL,
    output BIGINT NOT NULL,
    cached_input BIGINT,
    cache_write BIGINT,
    updated_at_ms BIGINT NOT NULL
);
