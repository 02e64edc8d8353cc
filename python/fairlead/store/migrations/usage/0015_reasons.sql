-- Requests can be grouped and filtered by the reason why they failed. As before (0013_unpriced.sql), with the kind of the error.

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
    request_id, session_tag, session_id, status, outcome, error_kind, no_log,
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
