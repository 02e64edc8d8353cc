-- The listener of a job is an endpoint like any other, owned by the job. A secret that is carried over keeps the job's
-- id as its own, since it was sealed with it.

INSERT INTO webhook_endpoints (
    id, surface, owner, name, url, events, state, reason, failing_since_ms, not_before_ms, created_at_ms, updated_at_ms
)
SELECT uuid()::VARCHAR, 'crawl', id, NULL, webhook, ['*'], 'enabled', NULL, NULL, 0, created_at_ms, created_at_ms
FROM scrape_jobs
WHERE webhook IS NOT NULL AND webhook_secret_sealed IS NOT NULL AND ended_at_ms IS NULL;

INSERT INTO webhook_secrets (id, endpoint_id, sealed, tail, created_at_ms, expires_at_ms)
SELECT j.id, e.id, j.webhook_secret_sealed, '', j.created_at_ms, NULL
FROM scrape_jobs j JOIN webhook_endpoints e ON e.surface = 'crawl' AND e.owner = j.id;

ALTER TABLE scrape_jobs DROP COLUMN webhook;
ALTER TABLE scrape_jobs DROP COLUMN webhook_secret_sealed;
