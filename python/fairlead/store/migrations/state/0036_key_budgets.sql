-- Money of keys by month, the zone whose days, weeks and months count, and at how many percent of a limit somebody is told.

ALTER TABLE keys ADD COLUMN monthly_usage_limit_usd_micros BIGINT;
ALTER TABLE keys ADD COLUMN usage_limit_tz VARCHAR DEFAULT 'UTC';
ALTER TABLE keys ADD COLUMN usage_alert_percents INTEGER[] DEFAULT [50, 80, 100];

-- What was told of which limit: each alert once in each window of a limit. A limit of another amount is another one.
CREATE TABLE budget_alerts (
    key_id VARCHAR NOT NULL,
    field VARCHAR NOT NULL,
    limit_usd_micros BIGINT NOT NULL,
    starts_ms BIGINT NOT NULL,
    ends_ms BIGINT NOT NULL,
    alert VARCHAR NOT NULL
);
