-- What the scraping API knows of sites. Saved sites stand beside saved endpoints (`kind`); `last_run` is JSON text. Selectors that a model found, maps, and what pages
-- held are kept for a while: a row is never more than a saved call.

ALTER TABLE scrape_endpoints ADD COLUMN kind VARCHAR DEFAULT 'endpoint';
ALTER TABLE scrape_endpoints ADD COLUMN last_run VARCHAR;

CREATE TABLE scrape_css_schemas (
    key VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    css_schema VARCHAR NOT NULL,
    stored_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL
);

CREATE TABLE scrape_maps (
    key VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    url VARCHAR NOT NULL,
    size_bytes BIGINT NOT NULL,
    stored_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    document VARCHAR NOT NULL
);

CREATE TABLE scrape_seen (
    key VARCHAR NOT NULL,
    fingerprint VARCHAR NOT NULL,
    at_ms BIGINT NOT NULL
);

CREATE TABLE scrape_calls (
    owner VARCHAR NOT NULL,
    day VARCHAR NOT NULL,
    calls BIGINT NOT NULL
);
