-- Usage rolled up by minute, hour and day. A round of ingestion adds what its records come to (`is_delta`) in the transaction
-- that adds the records; sums over a bucket's rows are right whatever came late or twice, and a closed bucket's rows are
-- merged from time to time. All counts are integers, so that no order of adding changes them.

CREATE TABLE dimensions (
    id INTEGER NOT NULL,
    key_id VARCHAR,
    endpoint VARCHAR NOT NULL,
    provider VARCHAR,
    connection_id VARCHAR,
    model VARCHAR,
    upstream_model VARCHAR,
    combo VARCHAR,
    strategy VARCHAR
);

-- From when on each level is whole: what is older may have been deleted. `requests` are the records themselves.
CREATE TABLE kept (level VARCHAR NOT NULL, from_ms BIGINT NOT NULL);
INSERT INTO kept VALUES ('requests', 0), ('minute', 0), ('hour', 0), ('day', 0);

CREATE TABLE rollup_minute (
    bucket_ms BIGINT NOT NULL,
    dimension_id INTEGER NOT NULL,
    is_delta BOOLEAN NOT NULL,
    requests BIGINT NOT NULL,
    let_through BIGINT NOT NULL,
    errors BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    tokens_input BIGINT NOT NULL,
    tokens_output BIGINT NOT NULL,
    tokens_cached BIGINT NOT NULL,
    tokens_reasoning BIGINT NOT NULL,
    tokens_cache_write BIGINT NOT NULL,
    cost_usd_micros BIGINT NOT NULL,
    cost_saved_usd_micros BIGINT NOT NULL,
    cache_hits BIGINT NOT NULL,
    cache_misses BIGINT NOT NULL,
    latency_us BIGINT NOT NULL,
    ok_latency_us BIGINT NOT NULL,
    ttft_us BIGINT NOT NULL,
    ttft_requests BIGINT NOT NULL,
    generation_us BIGINT NOT NULL,
    generation_tokens BIGINT NOT NULL,
    warm_calls BIGINT NOT NULL,
    cold_calls BIGINT NOT NULL,
    rewrite_calls BIGINT NOT NULL,
    uncached_calls BIGINT NOT NULL,
    cache_write_max BIGINT NOT NULL,
    last_ts_ms BIGINT NOT NULL
);

CREATE TABLE rollup_hour (
    bucket_ms BIGINT NOT NULL,
    dimension_id INTEGER NOT NULL,
    is_delta BOOLEAN NOT NULL,
    requests BIGINT NOT NULL,
    let_through BIGINT NOT NULL,
    errors BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    tokens_input BIGINT NOT NULL,
    tokens_output BIGINT NOT NULL,
    tokens_cached BIGINT NOT NULL,
    tokens_reasoning BIGINT NOT NULL,
    tokens_cache_write BIGINT NOT NULL,
    cost_usd_micros BIGINT NOT NULL,
    cost_saved_usd_micros BIGINT NOT NULL,
    cache_hits BIGINT NOT NULL,
    cache_misses BIGINT NOT NULL,
    latency_us BIGINT NOT NULL,
    ok_latency_us BIGINT NOT NULL,
    ttft_us BIGINT NOT NULL,
    ttft_requests BIGINT NOT NULL,
    generation_us BIGINT NOT NULL,
    generation_tokens BIGINT NOT NULL,
    warm_calls BIGINT NOT NULL,
    cold_calls BIGINT NOT NULL,
    rewrite_calls BIGINT NOT NULL,
    uncached_calls BIGINT NOT NULL,
    cache_write_max BIGINT NOT NULL,
    last_ts_ms BIGINT NOT NULL
);

CREATE TABLE rollup_day (
    bucket_ms BIGINT NOT NULL,
    dimension_id INTEGER NOT NULL,
    is_delta BOOLEAN NOT NULL,
    requests BIGINT NOT NULL,
    let_through BIGINT NOT NULL,
    errors BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    tokens_input BIGINT NOT NULL,
    tokens_output BIGINT NOT NULL,
    tokens_cached BIGINT NOT NULL,
    tokens_reasoning BIGINT NOT NULL,
    tokens_cache_write BIGINT NOT NULL,
    cost_usd_micros BIGINT NOT NULL,
    cost_saved_usd_micros BIGINT NOT NULL,
    cache_hits BIGINT NOT NULL,
    cache_misses BIGINT NOT NULL,
    latency_us BIGINT NOT NULL,
    ok_latency_us BIGINT NOT NULL,
    ttft_us BIGINT NOT NULL,
    ttft_requests BIGINT NOT NULL,
    generation_us BIGINT NOT NULL,
    generation_tokens BIGINT NOT NULL,
    warm_calls BIGINT NOT NULL,
    cold_calls BIGINT NOT NULL,
    rewrite_calls BIGINT NOT NULL,
    uncached_calls BIGINT NOT NULL,
    cache_write_max BIGINT NOT NULL,
    last_ts_ms BIGINT NOT NULL
);

-- Values in bins two per cent wide: latencies of completed requests and of the others (`latency`, `latency_failed`, in
-- microseconds), and tokens written to the provider's prompt cache (`cache_write`). `total` is the sum of the bin's values.
CREATE TABLE histogram_minute (
    bucket_ms BIGINT NOT NULL,
    dimension_id INTEGER NOT NULL,
    is_delta BOOLEAN NOT NULL,
    measure VARCHAR NOT NULL,
    bin SMALLINT NOT NULL,
    requests BIGINT NOT NULL,
    total BIGINT NOT NULL
);

CREATE TABLE histogram_hour (
    bucket_ms BIGINT NOT NULL,
    dimension_id INTEGER NOT NULL,
    is_delta BOOLEAN NOT NULL,
    measure VARCHAR NOT NULL,
    bin SMALLINT NOT NULL,
    requests BIGINT NOT NULL,
    total BIGINT NOT NULL
);

CREATE TABLE histogram_day (
    bucket_ms BIGINT NOT NULL,
    dimension_id INTEGER NOT NULL,
    is_delta BOOLEAN NOT NULL,
    measure VARCHAR NOT NULL,
    bin SMALLINT NOT NULL,
    requests BIGINT NOT NULL,
    total BIGINT NOT NULL
);

-- What each record of a table comes to. The model of what was turned away before any provider was chosen is whatever the
-- caller wrote, so it is left out: rollups are kept long, and callers must not decide how many rows they have.
CREATE MACRO usage_facts(source) AS TABLE
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
    upstream_model, combo, strategy,
    is_ok, is_call, tokens_cache_write AS written,
    1::BIGINT AS requests,
    (outcome NOT IN ('refused', 'shed'))::BIGINT AS let_through,
    (NOT is_ok)::BIGINT AS errors,
    attempts::BIGINT AS attempts,
    tokens_input, tokens_output, tokens_cached, tokens_reasoning, tokens_cache_write, cost_usd_micros,
    coalesce(cost_saved_usd_micros, 0) AS cost_saved_usd_micros,
    is_hit::BIGINT AS cache_hits,
    (cache IS NOT DISTINCT FROM 'miss')::BIGINT AS cache_misses,
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

CREATE MACRO usage_bin(value) AS floor(ln(greatest(value, 1)) / ln(1.02))::SMALLINT;

-- Each value of each record of a table of facts.
CREATE MACRO usage_values(facts) AS TABLE
SELECT *, CASE WHEN is_ok THEN 'latency' ELSE 'latency_failed' END AS measure, latency_us AS value,
    usage_bin(latency_us) AS bin
FROM query_table(facts)
UNION ALL
SELECT *, 'cache_write' AS measure, written AS value, usage_bin(written) AS bin
FROM query_table(facts) WHERE is_call AND written > 0;

CREATE VIEW request_facts AS FROM usage_facts('requests');
CREATE VIEW request_values AS FROM usage_values('request_facts');

-- What is there already.
INSERT INTO dimensions
SELECT row_number() OVER (), key_id, endpoint, provider, connection_id, model, upstream_model, combo, strategy
FROM (SELECT DISTINCT key_id, endpoint, provider, connection_id, model, upstream_model, combo, strategy FROM request_facts);

INSERT INTO rollup_minute
SELECT f.ts_ms - f.ts_ms % 60000, d.id, FALSE,
    sum(f.requests)::BIGINT,
    sum(f.let_through)::BIGINT,
    sum(f.errors)::BIGINT,
    sum(f.attempts)::BIGINT,
    sum(f.tokens_input)::BIGINT,
    sum(f.tokens_output)::BIGINT,
    sum(f.tokens_cached)::BIGINT,
    sum(f.tokens_reasoning)::BIGINT,
    sum(f.tokens_cache_write)::BIGINT,
    sum(f.cost_usd_micros)::BIGINT,
    sum(f.cost_saved_usd_micros)::BIGINT,
    sum(f.cache_hits)::BIGINT,
    sum(f.cache_misses)::BIGINT,
    sum(f.latency_us)::BIGINT,
    sum(f.ok_latency_us)::BIGINT,
    sum(f.ttft_us)::BIGINT,
    sum(f.ttft_requests)::BIGINT,
    sum(f.generation_us)::BIGINT,
    sum(f.generation_tokens)::BIGINT,
    sum(f.warm_calls)::BIGINT,
    sum(f.cold_calls)::BIGINT,
    sum(f.rewrite_calls)::BIGINT,
    sum(f.uncached_calls)::BIGINT,
    max(f.cache_write_max),
    max(f.last_ts_ms)
FROM request_facts f JOIN dimensions d ON d.key_id IS NOT DISTINCT FROM f.key_id AND d.endpoint IS NOT DISTINCT FROM f.endpoint AND d.provider IS NOT DISTINCT FROM f.provider AND d.connection_id IS NOT DISTINCT FROM f.connection_id AND d.model IS NOT DISTINCT FROM f.model AND d.upstream_model IS NOT DISTINCT FROM f.upstream_model AND d.combo IS NOT DISTINCT FROM f.combo AND d.strategy IS NOT DISTINCT FROM f.strategy
GROUP BY ALL;

INSERT INTO histogram_minute
SELECT f.ts_ms - f.ts_ms % 60000, d.id, FALSE, f.measure, f.bin, count(*), sum(f.value)::BIGINT
FROM request_values f JOIN dimensions d ON d.key_id IS NOT DISTINCT FROM f.key_id AND d.endpoint IS NOT DISTINCT FROM f.endpoint AND d.provider IS NOT DISTINCT FROM f.provider AND d.connection_id IS NOT DISTINCT FROM f.connection_id AND d.model IS NOT DISTINCT FROM f.model AND d.upstream_model IS NOT DISTINCT FROM f.upstream_model AND d.combo IS NOT DISTINCT FROM f.combo AND d.strategy IS NOT DISTINCT FROM f.strategy
GROUP BY ALL;

INSERT INTO rollup_hour
SELECT bucket_ms - bucket_ms % 3600000, dimension_id, FALSE,
    sum(requests)::BIGINT,
    sum(let_through)::BIGINT,
    sum(errors)::BIGINT,
    sum(attempts)::BIGINT,
    sum(tokens_input)::BIGINT,
    sum(tokens_output)::BIGINT,
    sum(tokens_cached)::BIGINT,
    sum(tokens_reasoning)::BIGINT,
    sum(tokens_cache_write)::BIGINT,
    sum(cost_usd_micros)::BIGINT,
    sum(cost_saved_usd_micros)::BIGINT,
    sum(cache_hits)::BIGINT,
    sum(cache_misses)::BIGINT,
    sum(latency_us)::BIGINT,
    sum(ok_latency_us)::BIGINT,
    sum(ttft_us)::BIGINT,
    sum(ttft_requests)::BIGINT,
    sum(generation_us)::BIGINT,
    sum(generation_tokens)::BIGINT,
    sum(warm_calls)::BIGINT,
    sum(cold_calls)::BIGINT,
    sum(rewrite_calls)::BIGINT,
    sum(uncached_calls)::BIGINT,
    max(cache_write_max),
    max(last_ts_ms)
FROM rollup_minute GROUP BY ALL;

INSERT INTO histogram_hour
SELECT bucket_ms - bucket_ms % 3600000, dimension_id, FALSE, measure, bin, sum(requests)::BIGINT, sum(total)::BIGINT
FROM histogram_minute GROUP BY ALL;

INSERT INTO rollup_day
SELECT bucket_ms - bucket_ms % 86400000, dimension_id, FALSE,
    sum(requests)::BIGINT,
    sum(let_through)::BIGINT,
    sum(errors)::BIGINT,
    sum(attempts)::BIGINT,
    sum(tokens_input)::BIGINT,
    sum(tokens_output)::BIGINT,
    sum(tokens_cached)::BIGINT,
    sum(tokens_reasoning)::BIGINT,
    sum(tokens_cache_write)::BIGINT,
    sum(cost_usd_micros)::BIGINT,
    sum(cost_saved_usd_micros)::BIGINT,
    sum(cache_hits)::BIGINT,
    sum(cache_misses)::BIGINT,
    sum(latency_us)::BIGINT,
    sum(ok_latency_us)::BIGINT,
    sum(ttft_us)::BIGINT,
    sum(ttft_requests)::BIGINT,
    sum(generation_us)::BIGINT,
    sum(generation_tokens)::BIGINT,
    sum(warm_calls)::BIGINT,
    sum(cold_calls)::BIGINT,
    sum(rewrite_calls)::BIGINT,
    sum(uncached_calls)::BIGINT,
    max(cache_write_max),
    max(last_ts_ms)
FROM rollup_hour GROUP BY ALL;

INSERT INTO histogram_day
SELECT bucket_ms - bucket_ms % 86400000, dimension_id, FALSE, measure, bin, sum(requests)::BIGINT, sum(total)::BIGINT
FROM histogram_hour GROUP BY ALL;
