-- The number of requests whose cost is not known, or not all of it, because a model has no price (`price_tiers` has `unpriced`).
-- Sums of costs leave these requests out, so every sum of a cost is shown with this number.

ALTER TABLE rollup_minute ADD COLUMN unpriced_requests BIGINT DEFAULT 0;
ALTER TABLE rollup_hour ADD COLUMN unpriced_requests BIGINT DEFAULT 0;
ALTER TABLE rollup_day ADD COLUMN unpriced_requests BIGINT DEFAULT 0;

-- As before (0008_chaos.sql), with the number of such requests.
CREATE OR REPLACE MACRO usage_facts(source) AS TABLE
WITH told AS (
    SELECT *,
        round(r.latency_ms * 1000)::BIGINT AS whole_us,
        round(r.ttft_ms * 1000)::BIGINT AS first_us,
        outcome = 'completed' AS is_ok,
        provider IS NULL AND outcome IN ('refused', 'shed') AS is_stray,
        -- A hit is told as one, or by how it came about.
        coalesce(cache IN ('hit', 'exact', 'vector', 'joined'), FALSE) AS is_hit,
        outcome = 'completed' AND provider IS NOT NULL AND tokens_input > 0 AND NOT is_hit AS is_call,
        outcome = 'completed' AND stream AND ttft_ms IS NOT NULL AND tokens_output > 0 AND latency_ms > ttft_ms
            AND NOT is_hit AS is_paced
    FROM query_table(source) r
)
SELECT
    ts_ms, key_id, endpoint, provider, connection_id,
    CASE WHEN NOT is_stray THEN model END AS model,
    upstream_model, combo, strategy, group_path, tags,
    request_id, session_tag, session_id, status, outcome, no_log,
    is_ok, is_call, tokens_cache_write AS written,
    1::BIGINT AS requests,
    (outcome NOT IN ('refused', 'shed'))::BIGINT AS let_through,
    (NOT is_ok)::BIGINT AS errors,
    attempts::BIGINT AS attempts,
    tokens_input, tokens_output, tokens_cached, tokens_reasoning, tokens_cache_write, cost_usd_micros,
    coalesce(cost_saved_usd_micros, 0) AS cost_saved_usd_micros,
    is_hit::BIGINT AS cache_hits,
    (cache IS NOT DISTINCT FROM 'miss')::BIGINT AS cache_misses,
    coalesce(list_contains(string_split(price_tiers, ','), 'unpriced'), FALSE)::BIGINT AS unpriced_requests,
    whole_us AS latency_us,
    CASE WHEN is_ok THEN whole_us ELSE 0 END AS ok_latency_us,
    CASE WHEN is_ok THEN coalesce(first_us, 0) ELSE 0 END AS ttft_us,
    (is_ok AND first_us IS NOT NULL)::BIGINT AS ttft_requests,
    CASE WHEN is_paced THEN whole_us - first_us ELSE 0 END AS generation_us,
    CASE WHEN is_paced THEN tokens_output ELSE 0 END AS generation_tokens,
    (is_call AND tokens_cached > 0 AND tokens_cached >= tokens_cache_write)::BIGINT AS warm_calls,
    (is_call AND tokens_cached = 0 AND tokens_cache_write > 0)::BIGINT AS cold_calls,
    (is_call AND tokens_cached > 0 AND tokens_cached < tokens_cache_write)::BIGINT AS rewrite_calls,
    (is_call AND tokens_cached = 0 AND tokens_cache_write = 0)::BIGINT AS uncached_calls,
    CASE WHEN is_call THEN tokens_cache_write ELSE 0 END AS cache_write_max,
    ts_ms AS last_ts_ms
FROM told;

CREATE OR REPLACE VIEW request_facts AS FROM usage_facts('requests');
CREATE OR REPLACE VIEW request_values AS FROM usage_values('request_facts');

-- Requests that are stored already: rows that add their number to the sums of their buckets, which are merged like any other.
-- Buckets that a level has deleted stay deleted.
CREATE MACRO unpriced_deltas(level_name, size_ms) AS TABLE
SELECT f.ts_ms - f.ts_ms % size_ms AS bucket_ms, d.id AS dimension_id, TRUE AS is_delta,
    0 AS requests, 0 AS let_through, 0 AS errors, 0 AS attempts,
    0 AS tokens_input, 0 AS tokens_output, 0 AS tokens_cached, 0 AS tokens_reasoning,
    0 AS tokens_cache_write, 0 AS cost_usd_micros, 0 AS cost_saved_usd_micros, 0 AS cache_hits,
    0 AS cache_misses, 0 AS latency_us, 0 AS ok_latency_us, 0 AS ttft_us,
    0 AS ttft_requests, 0 AS generation_us, 0 AS generation_tokens, 0 AS warm_calls,
    0 AS cold_calls, 0 AS rewrite_calls, 0 AS uncached_calls, 0 AS cache_write_max,
    max(f.last_ts_ms) AS last_ts_ms, sum(f.unpriced_requests)::BIGINT AS unpriced_requests
FROM request_facts f JOIN dimensions d
    ON d.key_id IS NOT DISTINCT FROM f.key_id
    AND d.endpoint IS NOT DISTINCT FROM f.endpoint
    AND d.provider IS NOT DISTINCT FROM f.provider
    AND d.connection_id IS NOT DISTINCT FROM f.connection_id
    AND d.model IS NOT DISTINCT FROM f.model
    AND d.upstream_model IS NOT DISTINCT FROM f.upstream_model
    AND d.combo IS NOT DISTINCT FROM f.combo
    AND d.strategy IS NOT DISTINCT FROM f.strategy
    AND d.group_path IS NOT DISTINCT FROM f.group_path
    AND d.tags IS NOT DISTINCT FROM f.tags
WHERE f.unpriced_requests > 0
    AND f.ts_ms - f.ts_ms % size_ms >= (SELECT from_ms FROM kept WHERE level = level_name)
GROUP BY ALL;

INSERT INTO rollup_minute BY NAME FROM unpriced_deltas('minute', 60000);
INSERT INTO rollup_hour BY NAME FROM unpriced_deltas('hour', 3600000);
INSERT INTO rollup_day BY NAME FROM unpriced_deltas('day', 86400000);

DROP MACRO TABLE unpriced_deltas;
