-- The tables of the usage database. `requests` has one row for each settled request, appended and never changed. Its columns are the
-- fields of the lines in the spool.
CREATE TABLE requests (
    request_id VARCHAR NOT NULL,
    ts_ms BIGINT NOT NULL,
    worker_id VARCHAR NOT NULL,
    principal_kind VARCHAR NOT NULL,
    key_id VARCHAR,
    session_tag VARCHAR,
    endpoint VARCHAR NOT NULL,
    method VARCHAR NOT NULL,
    path VARCHAR NOT NULL,
    model VARCHAR,
    provider VARCHAR,
    connection_id VARCHAR,
    upstream_model VARCHAR,
    stream BOOLEAN NOT NULL,
    status INTEGER NOT NULL,
    outcome VARCHAR NOT NULL,
    error_kind VARCHAR,
    tokens_input BIGINT NOT NULL,
    tokens_output BIGINT NOT NULL,
    tokens_cached BIGINT NOT NULL,
    tokens_reasoning BIGINT NOT NULL,
    tokens_cache_write BIGINT NOT NULL,
    cost_usd_micros BIGINT NOT NULL,
    latency_ms DOUBLE NOT NULL,
    ttft_ms DOUBLE,
    attempts INTEGER NOT NULL,
    bytes_request BIGINT NOT NULL,
    bytes_response BIGINT NOT NULL,
    no_log BOOLEAN NOT NULL,
    session_id VARCHAR,
    combo VARCHAR,
    strategy VARCHAR,
    -- The response cache.
    cache VARCHAR,
    cache_kind VARCHAR,
    cost_saved_usd_micros BIGINT,
    trace_id VARCHAR,
    span_id VARCHAR,
    parent_span_id VARCHAR,
    -- Findings of guardrails: `name;found=kind;action=action`, separated by commas.
    guardrails VARCHAR,
    -- Compression of the conversation: tokens of its texts, the price of the saved tokens as input, and the reasons why texts were not
    -- changed: `engine:reason=count`, separated by commas.
    compression VARCHAR,
    compression_tokens_before BIGINT,
    compression_tokens_after BIGINT,
    compression_ms DOUBLE,
    compression_rejected VARCHAR,
    compression_saved_usd_micros BIGINT,
    -- The cost depends on tokens in the provider's one-hour cache, the service tier that the provider reported, and the prices that applied
    -- (`flex,above_272000,cached_input`).
    tokens_cache_write_hour BIGINT,
    service_tier VARCHAR,
    price_tiers VARCHAR,
    -- The groups of the key when the call was admitted: their ids from the topmost down, separated by `/`, and the tags of the key and
    -- the groups between commas. They stay when the key is moved.
    group_path VARCHAR,
    tags VARCHAR,
    -- The injected fault.
    chaos VARCHAR,
    -- Whether the conversation stayed with the target whose provider has it in its prompt cache.
    cache_hold VARCHAR,
    -- The time from admission to the choice of targets, and the failed attempts, separated by commas: `connection;kind;end;model`, and
    -- `status;code;type;request id;message` if the provider answered.
    chosen_ms DOUBLE,
    failed_attempts VARCHAR,
    -- The message that the caller of a failed request received, masked and of at most 300 bytes.
    error_message VARCHAR,
    -- Why a prompt was not read from the provider's cache: the conversation of the request, hashes of the segments of its prompt
    -- (`tools.system.turns.hash.hash...`, the newest turn first), and the micro-dollars that a million cached tokens save. Only for models
    -- with a lower price for cached input. The prompt is not stored.
    conversation VARCHAR,
    prompt_hashes VARCHAR,
    cache_read_saving BIGINT
);

-- Segments that are in `requests`. A name is needed until its file is deleted, which follows the commit.
CREATE TABLE segments (name VARCHAR NOT NULL, ingested_at_ms BIGINT NOT NULL);

-- When each key was last used; this outlives the requests.
CREATE TABLE key_uses (
    key_id VARCHAR PRIMARY KEY,
    last_used_ms BIGINT NOT NULL
);

-- The position up to which this database has read the log that the nodes of one PostgreSQL database share. Empty for a single node.
CREATE TABLE log_place (log_id VARCHAR NOT NULL, position BIGINT NOT NULL, segment VARCHAR NOT NULL);

-- Usage by minute, hour and day. A round of ingestion adds the sums of its records (`is_delta`) in the transaction that adds the records.
-- The sum of a bucket's rows is always right, whatever arrives late or twice. The rows of a closed bucket are merged from time to time.
-- All counts are integers, so the order of additions does not change them.
CREATE TABLE dimensions (
    id INTEGER NOT NULL,
    key_id VARCHAR,
    endpoint VARCHAR NOT NULL,
    provider VARCHAR,
    connection_id VARCHAR,
    model VARCHAR,
    upstream_model VARCHAR,
    combo VARCHAR,
    strategy VARCHAR,
    group_path VARCHAR,
    tags VARCHAR
);

-- The time from which each level is complete: older rows may have been deleted. `requests` are the records themselves.
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
    last_ts_ms BIGINT NOT NULL,
    -- Requests whose cost is not known, or only in part. Sums of costs leave them out.
    unpriced_requests BIGINT DEFAULT 0
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
    last_ts_ms BIGINT NOT NULL,
    -- Requests whose cost is not known, or only in part. Sums of costs leave them out.
    unpriced_requests BIGINT DEFAULT 0
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
    last_ts_ms BIGINT NOT NULL,
    -- Requests whose cost is not known, or only in part. Sums of costs leave them out.
    unpriced_requests BIGINT DEFAULT 0
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

-- The figures of each record of a table. Requests that were refused before a provider was chosen have no model here: it is any text of
-- the caller, and callers must not decide how many rows the rollups have.
CREATE MACRO usage_facts(source) AS TABLE
WITH told AS (
    SELECT *,
        round(r.latency_ms * 1000)::BIGINT AS whole_us,
        round(r.ttft_ms * 1000)::BIGINT AS first_us,
        outcome = 'completed' AS is_ok,
        provider IS NULL AND outcome IN ('refused', 'shed') AS is_stray,
        -- Older records say `hit`, newer ones name the kind of hit.
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
