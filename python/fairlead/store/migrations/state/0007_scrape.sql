-- Scraping: jobs, their frontier, what they read, the page cache, saved endpoints. Frontier rows are
-- updated, documents are only inserted. Options and documents are JSON text.

CREATE TABLE scrape_jobs (
    id VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    url VARCHAR NOT NULL,
    options VARCHAR NOT NULL,
    pages_max INTEGER NOT NULL,
    webhook VARCHAR,
    webhook_secret_sealed BLOB,
    error VARCHAR,
    created_at_ms BIGINT NOT NULL,
    ended_at_ms BIGINT,
    expires_at_ms BIGINT
);

CREATE TABLE scrape_frontier (
    job_id VARCHAR NOT NULL,
    place INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    url VARCHAR NOT NULL,
    status VARCHAR NOT NULL
);

CREATE TABLE scrape_pages (
    job_id VARCHAR NOT NULL,
    number INTEGER NOT NULL,
    place INTEGER NOT NULL,
    url VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    http_status INTEGER,
    error VARCHAR,
    code VARCHAR,
    document VARCHAR,
    at_ms BIGINT NOT NULL
);

CREATE TABLE scrape_cache (
    key VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    url VARCHAR NOT NULL,
    final_url VARCHAR NOT NULL,
    status INTEGER NOT NULL,
    etag VARCHAR,
    last_modified VARCHAR,
    stored_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    document VARCHAR NOT NULL
);

CREATE TABLE scrape_endpoints (
    id VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    slug VARCHAR NOT NULL,
    definition VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL
);
