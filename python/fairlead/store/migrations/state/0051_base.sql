-- The tables of the state database. Times are UTC milliseconds, money is integer micro-dollars, and structures are JSON text.
-- Secrets are hashed, or sealed with the id of their row.

CREATE TABLE meta (
    name VARCHAR NOT NULL,
    value VARCHAR NOT NULL
);

-- Changed settings, each as JSON.
CREATE TABLE operator_settings (
    name VARCHAR NOT NULL,
    value VARCHAR NOT NULL
);

-- API keys of callers.
CREATE TABLE keys (
    id VARCHAR NOT NULL,
    hash VARCHAR NOT NULL,
    preview VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    name VARCHAR NOT NULL,
    is_active BOOLEAN NOT NULL,
    is_banned BOOLEAN NOT NULL,
    expires_at_ms BIGINT,
    model_access_mode VARCHAR NOT NULL,
    allowed_models VARCHAR[] NOT NULL,
    blocked_models VARCHAR[] NOT NULL,
    allowed_combos VARCHAR[] NOT NULL,
    connection_access_mode VARCHAR NOT NULL,
    allowed_connections VARCHAR[] NOT NULL,
    allow_auto_combos BOOLEAN NOT NULL,
    catalog_scope VARCHAR NOT NULL,
    forced_model VARCHAR,
    no_log BOOLEAN NOT NULL,
    auto_resolve BOOLEAN NOT NULL,
    throttle_delay_ms INTEGER NOT NULL,
    max_sessions INTEGER NOT NULL,
    rate_limits VARCHAR,
    access_schedule VARCHAR,
    scopes VARCHAR[] NOT NULL,
    allowed_endpoints VARCHAR[] NOT NULL,
    stream_default_mode VARCHAR NOT NULL,
    cache_default_mode VARCHAR NOT NULL,
    compression_enabled BOOLEAN NOT NULL,
    tool_service_mode VARCHAR NOT NULL,
    disable_non_public_models BOOLEAN NOT NULL,
    allow_usage_command BOOLEAN NOT NULL,
    usage_limit_enabled BOOLEAN NOT NULL,
    chaos_mode_enabled BOOLEAN NOT NULL,
    daily_usage_limit_usd_micros BIGINT,
    weekly_usage_limit_usd_micros BIGINT,
    -- Guardrails that do not apply to the key.
    disabled_guardrails VARCHAR[] DEFAULT [],
    -- For models without a price, if the key has a limit in dollars: `allow` or `refuse`; null is the default of the settings.
    unpriced_models VARCHAR,
    -- Addresses and networks from which the key can be used; empty is all.
    ip_allowlist VARCHAR[] DEFAULT [],
    -- Budgets count by days, weeks and months of this time zone. Alerts are sent at these percentages of a limit.
    monthly_usage_limit_usd_micros BIGINT,
    usage_limit_tz VARCHAR DEFAULT 'UTC',
    usage_alert_percents INTEGER[] DEFAULT [50, 80, 100],
    group_id VARCHAR,
    tags VARCHAR[] DEFAULT [],
    made_by VARCHAR,
    -- Injected faults: the share of calls, the kinds, and the delay of those that take time.
    chaos_rate DOUBLE DEFAULT 0.1,
    chaos_faults VARCHAR[] DEFAULT ['error', 'overload', 'rate-limit', 'timeout', 'latency'],
    chaos_latency_ms INTEGER DEFAULT 2000,
    -- Whether requests and answers are stored for people to read.
    capture_bodies BOOLEAN DEFAULT FALSE,
    -- For request members that the provider does not accept: `refuse` or `drop`; null is the default of the connection.
    inexpressible VARCHAR,
    -- Ids of objects in the account at a provider that requests may name.
    allowed_provider_objects VARCHAR[] DEFAULT []
);

-- Providers that the operator defined.
CREATE TABLE provider_nodes (
    id VARCHAR NOT NULL,
    type VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    prefix VARCHAR NOT NULL,
    api_type VARCHAR NOT NULL,
    base_url VARCHAR NOT NULL,
    chat_path VARCHAR,
    models_path VARCHAR,
    icon_url VARCHAR,
    headers_sealed BLOB,
    header_names VARCHAR NOT NULL,
    timeouts VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL
);

-- Accounts at providers.
CREATE TABLE provider_connections (
    id VARCHAR NOT NULL,
    provider VARCHAR NOT NULL,
    auth_type VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    display_name VARCHAR,
    priority INTEGER NOT NULL,
    is_active BOOLEAN NOT NULL,
    default_model VARCHAR,
    max_concurrent INTEGER,
    provider_specific VARCHAR NOT NULL,
    credentials_sealed BLOB,
    api_key_tail VARCHAR,
    test_status VARCHAR,
    last_error VARCHAR,
    last_error_at_ms BIGINT,
    last_tested_at_ms BIGINT,
    models VARCHAR,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    -- The share of calls among connections of one priority, and limits of each. Null is no limit.
    weight INTEGER DEFAULT 1,
    requests_per_minute INTEGER,
    tokens_per_minute BIGINT,
    min_gap_ms INTEGER,
    queue_depth INTEGER,
    queue_timeout_ms INTEGER,
    -- The reserved percentage of each quota window, by the window's name.
    quota_window_thresholds VARCHAR
);

-- The number of tokens that a key may use in each period, in total or for one model or provider.
CREATE TABLE token_limits (
    id VARCHAR NOT NULL,
    key_id VARCHAR NOT NULL,
    scope_type VARCHAR NOT NULL,
    scope_value VARCHAR,
    token_limit BIGINT NOT NULL,
    reset_interval VARCHAR NOT NULL,
    reset_minute INTEGER NOT NULL,
    enabled BOOLEAN NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL
);

-- Listeners for events. `surface` says which kind of event they receive.
CREATE TABLE webhook_endpoints (
    id VARCHAR NOT NULL,
    surface VARCHAR NOT NULL,
    owner VARCHAR,
    name VARCHAR,
    url VARCHAR NOT NULL,
    events VARCHAR[] NOT NULL,
    state VARCHAR NOT NULL,
    reason VARCHAR,
    failing_since_ms BIGINT,
    not_before_ms BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL
);

-- Signing secrets of endpoints; during a rotation an endpoint has two.
CREATE TABLE webhook_secrets (
    id VARCHAR NOT NULL,
    endpoint_id VARCHAR NOT NULL,
    sealed BLOB NOT NULL,
    tail VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT
);

-- The outbox: a message is the exact body, and a delivery is one message to one endpoint.
CREATE TABLE webhook_messages (
    id VARCHAR NOT NULL,
    event VARCHAR NOT NULL,
    body VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL
);

CREATE TABLE webhook_deliveries (
    id VARCHAR NOT NULL,
    endpoint_id VARCHAR NOT NULL,
    message_id VARCHAR NOT NULL,
    event VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    attempts INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    next_attempt_at_ms BIGINT NOT NULL,
    finished_at_ms BIGINT,
    status INTEGER,
    error VARCHAR,
    latency_ms DOUBLE
);

CREATE TABLE webhook_attempts (
    delivery_id VARCHAR NOT NULL,
    endpoint_id VARCHAR NOT NULL,
    number INTEGER NOT NULL,
    at_ms BIGINT NOT NULL,
    latency_ms DOUBLE NOT NULL,
    status INTEGER,
    error VARCHAR
);

-- Users of the console.
CREATE TABLE users (
    id VARCHAR NOT NULL,
    email VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    role VARCHAR NOT NULL,
    is_active BOOLEAN NOT NULL,
    password_hash VARCHAR,
    totp_sealed BLOB,
    totp_pending_sealed BLOB,
    totp_last_step BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL
);

CREATE TABLE oidc_identities (
    issuer VARCHAR NOT NULL,
    subject VARCHAR NOT NULL,
    user_id VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL
);

CREATE TABLE recovery_codes (
    user_id VARCHAR NOT NULL,
    hash VARCHAR NOT NULL
);

-- Sign-ins that wait for the second factor.
CREATE TABLE login_challenges (
    user_id VARCHAR NOT NULL,
    hash VARCHAR NOT NULL,
    attempts INTEGER NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    -- The identity that is added to the account after the second factor. Null for a password or a known identity.
    way VARCHAR DEFAULT 'password',
    oidc_issuer VARCHAR,
    oidc_subject VARCHAR
);

CREATE TABLE management_tokens (
    id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    scope VARCHAR NOT NULL,
    hash VARCHAR NOT NULL,
    preview VARCHAR NOT NULL,
    created_by VARCHAR,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT
);

-- Signed-in browsers.
CREATE TABLE sessions (
    id VARCHAR NOT NULL,
    hash VARCHAR NOT NULL,
    user_id VARCHAR NOT NULL,
    way VARCHAR NOT NULL,
    peer VARCHAR NOT NULL,
    user_agent VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL
);

-- Model names that stand for several models.
CREATE TABLE combos (
    id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    description VARCHAR,
    strategy VARCHAR NOT NULL,
    steps VARCHAR NOT NULL,
    config VARCHAR NOT NULL,
    is_active BOOLEAN NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    rules VARCHAR DEFAULT '{}',
    sort_order INTEGER DEFAULT 0
);

-- Model names that stand for one other model.
CREATE TABLE model_aliases (
    alias VARCHAR NOT NULL,
    target VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL
);

-- Scraping jobs, their frontier and pages. Rows of the frontier are updated, pages are only inserted.
CREATE TABLE scrape_jobs (
    id VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    url VARCHAR NOT NULL,
    options VARCHAR NOT NULL,
    pages_max INTEGER NOT NULL,
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
    at_ms BIGINT NOT NULL,
    size_bytes BIGINT DEFAULT 0
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
    document VARCHAR NOT NULL,
    size_bytes BIGINT DEFAULT 0
);

-- Saved endpoints and saved sites.
CREATE TABLE scrape_endpoints (
    id VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    slug VARCHAR NOT NULL,
    definition VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL,
    kind VARCHAR DEFAULT 'endpoint',
    last_run VARCHAR
);

-- Models that the operator added to a provider, and settings that the operator changed for its other models.
CREATE TABLE provider_models (
    provider VARCHAR NOT NULL,
    model_id VARCHAR NOT NULL,
    is_custom BOOLEAN NOT NULL,
    settings VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL
);

-- The authorization server for tool clients. Codes and tokens are stored as SHA-256 only.
CREATE TABLE oauth_clients (
    id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    redirect_uri VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL,
    approved_at_ms BIGINT
);

-- What one user approved for one client. Its tokens end with it.
CREATE TABLE oauth_grants (
    id VARCHAR NOT NULL,
    client_id VARCHAR NOT NULL,
    user_id VARCHAR NOT NULL,
    resource VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL
);

CREATE TABLE oauth_codes (
    hash VARCHAR NOT NULL,
    grant_id VARCHAR NOT NULL,
    client_id VARCHAR NOT NULL,
    user_id VARCHAR NOT NULL,
    redirect_uri VARCHAR NOT NULL,
    challenge VARCHAR NOT NULL,
    resource VARCHAR NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    is_spent BOOLEAN NOT NULL
);

-- Access tokens have no generation. A refresh token is rotated when its grant has the next generation, so a rotation only
-- adds rows. Rotated tokens stay until they expire: a client that presents one again ends its grant.
CREATE TABLE oauth_tokens (
    hash VARCHAR NOT NULL,
    grant_id VARCHAR NOT NULL,
    generation INTEGER,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL
);

-- The project board.
CREATE TABLE board_projects (
    id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    description VARCHAR NOT NULL,
    next_number INTEGER NOT NULL,
    created_by VARCHAR,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    version INTEGER NOT NULL
);

CREATE TABLE board_members (
    id VARCHAR NOT NULL,
    project_id VARCHAR NOT NULL,
    user_id VARCHAR NOT NULL,
    role VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL
);

CREATE TABLE board_sprints (
    id VARCHAR NOT NULL,
    project_id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    goal VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    starts_on DATE,
    ends_on DATE,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    version INTEGER NOT NULL
);

CREATE TABLE board_tags (
    id VARCHAR NOT NULL,
    project_id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    color VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    version INTEGER NOT NULL
);

-- `rank` sorts the todos of a project, whatever their status (fairlead/board/rank.py).
CREATE TABLE board_todos (
    id VARCHAR NOT NULL,
    project_id VARCHAR NOT NULL,
    number INTEGER NOT NULL,
    title VARCHAR NOT NULL,
    body VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    rank VARCHAR NOT NULL,
    assignee_id VARCHAR,
    due_on DATE,
    sprint_id VARCHAR,
    created_by VARCHAR,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    done_at_ms BIGINT,
    version INTEGER NOT NULL
);

CREATE TABLE board_todo_tags (
    todo_id VARCHAR NOT NULL,
    tag_id VARCHAR NOT NULL
);

-- Static tokens of users, with which tools call the board.
CREATE TABLE static_tokens (
    id VARCHAR NOT NULL,
    user_id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    hash VARCHAR NOT NULL,
    preview VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL,
    revoked_at_ms BIGINT
);

-- Skills of agents, their tasks, and the messages of the tasks.
CREATE TABLE agent_skills (
    id VARCHAR NOT NULL,
    slug VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    description VARCHAR NOT NULL,
    prompt VARCHAR NOT NULL,
    model VARCHAR,
    temperature DOUBLE,
    api_key_id VARCHAR,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL
);

CREATE TABLE agent_tasks (
    id VARCHAR NOT NULL,
    skill_id VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    context_id VARCHAR NOT NULL,
    message_id VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    attempts INTEGER NOT NULL,
    reason VARCHAR,
    metadata VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT
);

-- `parts` is JSON: the parts of an A2A message.
CREATE TABLE agent_messages (
    task_id VARCHAR NOT NULL,
    number INTEGER NOT NULL,
    message_id VARCHAR NOT NULL,
    role VARCHAR NOT NULL,
    parts VARCHAR NOT NULL,
    at_ms BIGINT NOT NULL
);

-- Prices that the operator set for models of a provider: micro-dollars per million tokens.
CREATE TABLE price_overrides (
    provider VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    input BIGINT NOT NULL,
    output BIGINT NOT NULL,
    cached_input BIGINT,
    cache_write BIGINT,
    updated_at_ms BIGINT NOT NULL,
    -- Prices of other units: an image, a second of a recording, a page, a search, a million characters of speech.
    per_image BIGINT,
    per_second BIGINT,
    per_page BIGINT,
    per_query BIGINT,
    per_million_characters BIGINT,
    -- Prices of one-hour cache writes, and prices for long inputs or other service tiers: a JSON list of
    -- `{"service", "above", "input", ...}`.
    cache_write_hour BIGINT,
    tiers VARCHAR
);

-- States of connections that outlive a relay worker.
CREATE TABLE connection_states (
    connection_id VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    reason VARCHAR,
    until_ms BIGINT,
    since_ms BIGINT NOT NULL
);

-- States that an operator cleared.
CREATE TABLE resilience_clears (
    number BIGINT NOT NULL,
    provider VARCHAR,
    connection VARCHAR,
    model VARCHAR,
    at_ms BIGINT NOT NULL
);

-- Stored responses. `input` has the items of this request alone; earlier items are in the response `previous_id`.
CREATE TABLE responses (
    id VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    previous_id VARCHAR,
    model VARCHAR NOT NULL,
    input VARCHAR NOT NULL,
    response VARCHAR NOT NULL,
    size_bytes BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    -- Set while a background response is not complete.
    is_open BOOLEAN DEFAULT false
);

-- Files of callers. Their contents are in the folder `files`, under the file's id.
CREATE TABLE files (
    id VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    purpose VARCHAR NOT NULL,
    file_name VARCHAR NOT NULL,
    bytes BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT,
    mime_type VARCHAR
);

-- Batches over files. The progress of a batch is in the folder `batches`.
CREATE TABLE batches (
    id VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    endpoint VARCHAR NOT NULL,
    input_file_id VARCHAR NOT NULL,
    metadata VARCHAR,
    output_expires_after_s BIGINT,
    status VARCHAR NOT NULL,
    model VARCHAR,
    errors VARCHAR,
    output_file_id VARCHAR,
    error_file_id VARCHAR,
    total INTEGER NOT NULL,
    completed INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    tokens_input BIGINT NOT NULL,
    tokens_output BIGINT NOT NULL,
    tokens_cached BIGINT NOT NULL,
    tokens_reasoning BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    in_progress_at_ms BIGINT,
    finalizing_at_ms BIGINT,
    cancelling_at_ms BIGINT,
    ended_at_ms BIGINT,
    -- The API of the batch, its display name and priority, and whether requests and answers are in the calls themselves (Google's).
    dialect VARCHAR DEFAULT 'openai',
    display_name VARCHAR,
    priority BIGINT DEFAULT 0,
    is_inline BOOLEAN DEFAULT false,
    -- Anthropic's API: the beta features of the batch, and the number of its expired requests.
    betas VARCHAR,
    expired INTEGER DEFAULT 0
);

-- Web search engines.
CREATE TABLE search_providers (
    id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    base_url VARCHAR NOT NULL,
    key_sealed BLOB,
    priority INTEGER NOT NULL,
    is_active BOOLEAN NOT NULL,
    created_at_ms BIGINT NOT NULL,
    per_query BIGINT
);

-- Jobs of the generative service with listeners of their own.
CREATE TABLE service_jobs (
    id VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    has_own_listeners BOOLEAN NOT NULL,
    user_metadata VARCHAR,
    created_at_ms BIGINT NOT NULL,
    ended_at_ms BIGINT
);

-- Keys that sign deliveries. The private half is sealed, the public half is a JWK.
CREATE TABLE webhook_signing_keys (
    id VARCHAR NOT NULL,
    sealed BLOB NOT NULL,
    public_jwk VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL
);

-- Reverse tasks: their state, timeline, evidence, blocks and last run.
CREATE TABLE reverse_tasks (
    owner VARCHAR NOT NULL,
    id VARCHAR NOT NULL,
    slug VARCHAR,
    target_url VARCHAR,
    goal VARCHAR NOT NULL,
    stage VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    summary VARCHAR,
    next_step_hint VARCHAR,
    criteria VARCHAR NOT NULL,
    tags VARCHAR[] NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    archived_at_ms BIGINT
);

CREATE TABLE reverse_task_timeline (
    owner VARCHAR NOT NULL,
    task_id VARCHAR NOT NULL,
    number INTEGER NOT NULL,
    at_ms BIGINT NOT NULL,
    stage VARCHAR NOT NULL,
    action VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    detail VARCHAR
);

CREATE TABLE reverse_task_evidence (
    owner VARCHAR NOT NULL,
    task_id VARCHAR NOT NULL,
    number INTEGER NOT NULL,
    at_ms BIGINT NOT NULL,
    kind VARCHAR NOT NULL,
    summary VARCHAR NOT NULL,
    data VARCHAR NOT NULL
);

CREATE TABLE reverse_task_blocks (
    owner VARCHAR NOT NULL,
    task_id VARCHAR NOT NULL,
    reason VARCHAR NOT NULL,
    blocked_by VARCHAR NOT NULL,
    raised_at_ms BIGINT NOT NULL,
    lifted_at_ms BIGINT
);

CREATE TABLE reverse_task_runs (
    owner VARCHAR NOT NULL,
    task_id VARCHAR NOT NULL,
    strategy VARCHAR NOT NULL,
    steps VARCHAR NOT NULL,
    rounds INTEGER NOT NULL,
    updated_at_ms BIGINT NOT NULL
);

-- Events of background responses, as a JSON list, for callers that read the stream again.
CREATE TABLE response_events (
    response_id VARCHAR NOT NULL,
    events VARCHAR NOT NULL
);

-- Videos: the provider's operation, which is polled until it ends, and its result.
CREATE TABLE video_operations (
    id VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    connection_id VARCHAR NOT NULL,
    provider_operation VARCHAR NOT NULL,
    response VARCHAR,
    error VARCHAR,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    ended_at_ms BIGINT,
    -- The outbound proxy that the relay chose; polls use the same.
    proxy VARCHAR,
    -- The request as JSON, in OpenAI's API; null in Google's. `progress` is the provider's latest value, 0 to 100.
    request VARCHAR,
    progress INTEGER
);

CREATE TABLE video_files (
    id VARCHAR NOT NULL,
    operation_id VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    connection_id VARCHAR NOT NULL,
    uri VARCHAR NOT NULL
);

-- Selectors that a model found. Rows can be deleted: they only save a call.
CREATE TABLE scrape_css_schemas (
    key VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    css_schema VARCHAR NOT NULL,
    stored_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL
);

-- Maps of sites. Rows can be deleted: they only save a call.
CREATE TABLE scrape_maps (
    key VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    url VARCHAR NOT NULL,
    size_bytes BIGINT NOT NULL,
    stored_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    document VARCHAR NOT NULL
);

-- Fingerprints of earlier contents of pages.
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

-- How often processes that crashed started work on an item: `starts` since its last progress, `total` in all. `process` started it
-- last, when its progress was `steps`.
CREATE TABLE work_starts (
    kind VARCHAR NOT NULL,
    item_id VARCHAR NOT NULL,
    process VARCHAR NOT NULL,
    starts INTEGER NOT NULL,
    total INTEGER NOT NULL,
    steps BIGINT NOT NULL
);

-- The number of bytes that each key stores. `place` names the kind of content; the owner '' stands for all keys.
CREATE TABLE owner_bytes (
    place VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    bytes BIGINT NOT NULL,
    counted_at_ms BIGINT NOT NULL
);

-- Changes through the management API. `sent` and `before` are JSON with masked secrets. Ids increase with time, so pages are read by id.
CREATE TABLE audit_log (
    id VARCHAR NOT NULL,
    at_ms BIGINT NOT NULL,
    request_id VARCHAR NOT NULL,
    actor_kind VARCHAR NOT NULL,
    actor_id VARCHAR,
    actor_name VARCHAR,
    peer VARCHAR NOT NULL,
    method VARCHAR NOT NULL,
    path VARCHAR NOT NULL,
    route VARCHAR NOT NULL,
    outcome VARCHAR NOT NULL,
    status INTEGER,
    sent VARCHAR,
    before VARCHAR
);

-- Aliases that were created for a coding tool. The models that they stand for are in `model_aliases`, which the router reads.
CREATE TABLE coding_tool_aliases (
    tool VARCHAR NOT NULL,
    alias VARCHAR NOT NULL PRIMARY KEY
);

-- Compression pipelines that the operator defined.
CREATE TABLE context_pipelines (
    id VARCHAR NOT NULL PRIMARY KEY,
    name VARCHAR NOT NULL UNIQUE,
    description VARCHAR NOT NULL,
    stages VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL
);

-- A combo has one pipeline or none.
CREATE TABLE context_assignments (
    combo_id VARCHAR NOT NULL PRIMARY KEY,
    pipeline_id VARCHAR NOT NULL
);

-- Filters for the output of commands, as TOML.
CREATE TABLE output_filters (
    sha256 VARCHAR NOT NULL PRIMARY KEY,
    toml VARCHAR NOT NULL,
    position INTEGER NOT NULL
);

-- Unfinished sign-ins by device code (RFC 8628). Both codes are stored as SHA-256 only. `is_approved` is null until a user decides.
-- The poll that receives the token deletes an approved row.
CREATE TABLE oauth_device_codes (
    hash VARCHAR NOT NULL,
    user_hash VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    scope VARCHAR NOT NULL,
    address VARCHAR NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    user_id VARCHAR,
    is_approved BOOLEAN
);

-- Outbound proxies by level (`global`, `provider`, `combo`, `key`). `target` is the id that the proxy is for, empty for all. The scheme
-- `direct` means no proxy. The login is sealed with `<level>:<target>`.
CREATE TABLE outbound_proxies (
    level VARCHAR NOT NULL,
    target VARCHAR NOT NULL,
    scheme VARCHAR NOT NULL,
    host VARCHAR NOT NULL,
    port INTEGER NOT NULL,
    login_sealed BLOB
);

-- OAuth clients of the operator at providers, with endpoints if the provider's file has none. The secret is sealed with the
-- provider's id.
CREATE TABLE provider_clients (
    provider VARCHAR NOT NULL,
    section VARCHAR NOT NULL,
    secret_sealed BLOB,
    -- Origins that the secret may be sent to. Null is a secret that is bound when the endpoints change.
    secret_origins VARCHAR
);

-- The sign-in of a connection: its refresh token, and when it is used next. The access token is the connection's credential.
CREATE TABLE provider_sign_ins (
    connection_id VARCHAR NOT NULL,
    provider VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    refresh_sealed BLOB,
    expires_at_ms BIGINT,
    refreshed_at_ms BIGINT NOT NULL,
    next_at_ms BIGINT,
    failures INTEGER NOT NULL,
    last_error VARCHAR,
    -- When the provider was asked for new tokens and the answer is not stored: the answer may be lost.
    asked_at_ms BIGINT,
    refresh_origins VARCHAR
);

-- Unfinished sign-ins at providers. `id` is the hash of the state. The verifier or device code is sealed with it.
CREATE TABLE provider_sign_in_flows (
    id VARCHAR NOT NULL,
    provider VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    connection_id VARCHAR,
    name VARCHAR,
    secret_sealed BLOB NOT NULL,
    redirect_uri VARCHAR,
    interval_ms BIGINT,
    asked_at_ms BIGINT,
    expires_at_ms BIGINT NOT NULL,
    origins VARCHAR
);

-- Patterns of model names that select a combo.
CREATE TABLE model_combo_mappings (
    id VARCHAR NOT NULL,
    pattern VARCHAR NOT NULL,
    combo_id VARCHAR NOT NULL,
    priority INTEGER NOT NULL,
    is_enabled BOOLEAN NOT NULL,
    description VARCHAR,
    created_at_ms BIGINT NOT NULL
);

-- Alerts that were sent for a budget: each once for a limit in a window. A changed limit has its alerts again.
CREATE TABLE budget_alerts (
    owner_id VARCHAR NOT NULL,
    field VARCHAR NOT NULL,
    limit_usd_micros BIGINT NOT NULL,
    starts_ms BIGINT NOT NULL,
    ends_ms BIGINT NOT NULL,
    alert VARCHAR NOT NULL
);

-- The newest snapshot, compiled by one control for all (PostgreSQL). Empty in a file, which has one control.
CREATE TABLE published_snapshots (
    version BIGINT NOT NULL,
    document BLOB NOT NULL
);

-- The controls of one PostgreSQL database, and the snapshot that each has applied. Empty in a file.
CREATE TABLE control_nodes (
    id VARCHAR NOT NULL,
    host VARCHAR NOT NULL,
    fairlead_version VARCHAR NOT NULL,
    started_at_ms BIGINT NOT NULL,
    seen_at_ms BIGINT NOT NULL,
    applied_version BIGINT NOT NULL,
    report VARCHAR,
    -- The request of another control up to which this control has stored its responses.
    responses_stored_until BIGINT DEFAULT 0
);

-- Groups of keys in three levels. Limits and access of a group apply to its keys and to the groups below it.
CREATE TABLE key_groups (
    id VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    name VARCHAR NOT NULL,
    parent_id VARCHAR,
    is_active BOOLEAN NOT NULL,
    tags VARCHAR[] NOT NULL,
    model_access_mode VARCHAR NOT NULL,
    allowed_models VARCHAR[] NOT NULL,
    blocked_models VARCHAR[] NOT NULL,
    allowed_combos VARCHAR[] NOT NULL,
    connection_access_mode VARCHAR NOT NULL,
    allowed_connections VARCHAR[] NOT NULL,
    guardrails VARCHAR NOT NULL,
    rate_limits VARCHAR,
    token_limits VARCHAR,
    daily_usage_limit_usd_micros BIGINT,
    weekly_usage_limit_usd_micros BIGINT,
    monthly_usage_limit_usd_micros BIGINT,
    usage_limit_tz VARCHAR NOT NULL,
    usage_alert_percents INTEGER[] NOT NULL
);

-- Users who see and create keys of a group.
CREATE TABLE key_group_members (
    group_id VARCHAR NOT NULL,
    user_id VARCHAR NOT NULL,
    role VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL
);

-- The mail server: one row or none.
CREATE TABLE mail_server (
    host VARCHAR NOT NULL,
    port INTEGER NOT NULL,
    tls VARCHAR NOT NULL,
    username VARCHAR,
    password_sealed BLOB,
    sender VARCHAR NOT NULL,
    recipients VARCHAR[] NOT NULL,
    events VARCHAR[] NOT NULL,
    updated_at_ms BIGINT NOT NULL
);

-- Mails until they are sent or given up.
CREATE TABLE mails (
    id VARCHAR NOT NULL,
    event VARCHAR NOT NULL,
    subject VARCHAR NOT NULL,
    body VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    tries INTEGER NOT NULL,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    next_attempt_at_ms BIGINT NOT NULL,
    finished_at_ms BIGINT,
    error VARCHAR
);

-- Connections that are reserved for one session. An expired row has no effect, and the next lease deletes it.
CREATE TABLE session_leases (
    connection_id VARCHAR NOT NULL,
    key_id VARCHAR NOT NULL,
    owner_hash VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    generation BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL
);

-- Usage as the providers report it, as JSON. `key_sealed` is a key for the provider's usage route, if it needs another than the
-- connection's credential.
CREATE TABLE provider_usage (
    connection_id VARCHAR NOT NULL,
    key_sealed BLOB,
    figures VARCHAR NOT NULL,
    read_at_ms BIGINT,
    asked_at_ms BIGINT,
    failures INTEGER NOT NULL,
    last_error VARCHAR
);

-- Items that one of several controls works on, until when (PostgreSQL). Empty in a file.
CREATE TABLE work_leases (
    kind VARCHAR NOT NULL,
    item_id VARCHAR NOT NULL,
    holder VARCHAR NOT NULL,
    token VARCHAR NOT NULL,
    expires_at_ms BIGINT NOT NULL
);

-- Connections whose failure was reported to listeners. The control that finds one working again reports that.
CREATE TABLE failing_connections (
    connection_id VARCHAR NOT NULL,
    since_ms BIGINT NOT NULL
);

-- Segments of responses that were stored: a segment that is read again after a crash is not stored twice.
CREATE TABLE response_segments (
    name VARCHAR NOT NULL,
    stored_at_ms BIGINT NOT NULL
);

-- Conversations that responses are added to. Their items are in the order of `position`.
CREATE TABLE conversations (
    id VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    metadata VARCHAR NOT NULL,
    next_position BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL
);

CREATE TABLE conversation_items (
    conversation_id VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    position BIGINT NOT NULL,
    id VARCHAR NOT NULL,
    item VARCHAR NOT NULL,
    size_bytes BIGINT NOT NULL
);

-- Files that are uploaded in parts. The content of a part is stored like a file, by the id of the part. `file_id` is the file that
-- a completed upload became.
CREATE TABLE uploads (
    id VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    purpose VARCHAR NOT NULL,
    file_name VARCHAR NOT NULL,
    mime_type VARCHAR NOT NULL,
    bytes BIGINT NOT NULL,
    file_expires_after_s BIGINT,
    status VARCHAR NOT NULL,
    file_id VARCHAR,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL
);

CREATE TABLE upload_parts (
    id VARCHAR NOT NULL,
    upload_id VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    bytes BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL
);

-- Uploads through Google's API, in pieces. `token_hash` belongs to the secret in the address of the upload.
CREATE TABLE google_uploads (
    id VARCHAR NOT NULL,
    token_hash BLOB NOT NULL,
    owner VARCHAR NOT NULL,
    file_id VARCHAR NOT NULL,
    display_name VARCHAR NOT NULL,
    mime_type VARCHAR NOT NULL,
    bytes BIGINT NOT NULL,
    received_bytes BIGINT NOT NULL,
    pieces INTEGER NOT NULL,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL
);

-- Beginnings of requests that Google's clients store: `content` is a JSON object with members of a generateContent request.
CREATE TABLE cached_contents (
    id VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    display_name VARCHAR,
    content VARCHAR NOT NULL,
    size_bytes BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL
);

-- Requests that the gate refused because of their caller or address: counts by minute, address, route and reason, reported by each
-- relay worker. A request without a known key has no usage record.
CREATE TABLE refused_callers (
    worker_id VARCHAR NOT NULL,
    minute_ms BIGINT NOT NULL,
    address VARCHAR,
    method VARCHAR NOT NULL,
    path VARCHAR NOT NULL,
    status INTEGER NOT NULL,
    kind VARCHAR NOT NULL,
    message VARCHAR NOT NULL,
    requests BIGINT NOT NULL
);
