-- A SERIALIZABLE transaction conflicts with those that change what it has read: through an index it reads its rows,
-- without one the whole table. Names and hashes that exist once are UNIQUE, so that the server says so too.

CREATE UNIQUE INDEX IF NOT EXISTS meta_name ON meta (name);
CREATE UNIQUE INDEX IF NOT EXISTS operator_settings_name ON operator_settings (name);
CREATE UNIQUE INDEX IF NOT EXISTS published_snapshots_version ON published_snapshots (version);
CREATE UNIQUE INDEX IF NOT EXISTS control_nodes_id ON control_nodes (id);
CREATE UNIQUE INDEX IF NOT EXISTS work_leases_item ON work_leases (kind, item_id);
CREATE UNIQUE INDEX IF NOT EXISTS work_leases_token ON work_leases (token);

CREATE UNIQUE INDEX IF NOT EXISTS keys_id ON keys (id);
CREATE UNIQUE INDEX IF NOT EXISTS keys_hash ON keys (hash);
CREATE INDEX IF NOT EXISTS token_limits_id ON token_limits (id);
CREATE INDEX IF NOT EXISTS token_limits_key ON token_limits (key_id);
CREATE INDEX IF NOT EXISTS refused_callers_minute ON refused_callers (minute_ms);
CREATE INDEX IF NOT EXISTS budget_alerts_owner ON budget_alerts (owner_id);

CREATE UNIQUE INDEX IF NOT EXISTS users_id ON users (id);
CREATE INDEX IF NOT EXISTS users_email ON users (email);
CREATE INDEX IF NOT EXISTS oidc_identities_subject ON oidc_identities (issuer, subject);
CREATE INDEX IF NOT EXISTS oidc_identities_user ON oidc_identities (user_id);
CREATE INDEX IF NOT EXISTS recovery_codes_user ON recovery_codes (user_id);
CREATE INDEX IF NOT EXISTS login_challenges_hash ON login_challenges (hash);
CREATE INDEX IF NOT EXISTS login_challenges_user ON login_challenges (user_id);
CREATE INDEX IF NOT EXISTS login_challenges_end ON login_challenges (expires_at_ms);
CREATE UNIQUE INDEX IF NOT EXISTS sessions_hash ON sessions (hash);
CREATE INDEX IF NOT EXISTS sessions_id ON sessions (id);
CREATE INDEX IF NOT EXISTS sessions_user ON sessions (user_id);
CREATE INDEX IF NOT EXISTS sessions_end ON sessions (expires_at_ms);
CREATE UNIQUE INDEX IF NOT EXISTS management_tokens_hash ON management_tokens (hash);
CREATE INDEX IF NOT EXISTS management_tokens_id ON management_tokens (id);
CREATE UNIQUE INDEX IF NOT EXISTS static_tokens_hash ON static_tokens (hash);
CREATE INDEX IF NOT EXISTS static_tokens_id ON static_tokens (id);
CREATE INDEX IF NOT EXISTS static_tokens_user ON static_tokens (user_id);

CREATE UNIQUE INDEX IF NOT EXISTS oauth_clients_id ON oauth_clients (id);
CREATE UNIQUE INDEX IF NOT EXISTS oauth_grants_id ON oauth_grants (id);
CREATE INDEX IF NOT EXISTS oauth_grants_user ON oauth_grants (user_id);
CREATE UNIQUE INDEX IF NOT EXISTS oauth_codes_hash ON oauth_codes (hash);
CREATE INDEX IF NOT EXISTS oauth_codes_grant ON oauth_codes (grant_id);
CREATE INDEX IF NOT EXISTS oauth_codes_end ON oauth_codes (expires_at_ms);
CREATE UNIQUE INDEX IF NOT EXISTS oauth_tokens_hash ON oauth_tokens (hash);
CREATE UNIQUE INDEX IF NOT EXISTS oauth_tokens_generation ON oauth_tokens (grant_id, generation) WHERE generation IS NOT NULL;
CREATE INDEX IF NOT EXISTS oauth_tokens_grant ON oauth_tokens (grant_id);
CREATE INDEX IF NOT EXISTS oauth_tokens_end ON oauth_tokens (expires_at_ms);
CREATE UNIQUE INDEX IF NOT EXISTS oauth_device_codes_hash ON oauth_device_codes (hash);
CREATE INDEX IF NOT EXISTS oauth_device_codes_user_hash ON oauth_device_codes (user_hash);
CREATE INDEX IF NOT EXISTS oauth_device_codes_end ON oauth_device_codes (expires_at_ms);

CREATE INDEX IF NOT EXISTS provider_nodes_id ON provider_nodes (id);
CREATE INDEX IF NOT EXISTS provider_connections_id ON provider_connections (id);
CREATE INDEX IF NOT EXISTS provider_connections_provider ON provider_connections (provider);
CREATE INDEX IF NOT EXISTS provider_models_id ON provider_models (provider, model_id);
CREATE INDEX IF NOT EXISTS provider_clients_provider ON provider_clients (provider);
CREATE INDEX IF NOT EXISTS provider_sign_ins_connection ON provider_sign_ins (connection_id);
CREATE INDEX IF NOT EXISTS provider_usage_connection ON provider_usage (connection_id);
CREATE INDEX IF NOT EXISTS provider_sign_in_flows_id ON provider_sign_in_flows (id);
CREATE INDEX IF NOT EXISTS connection_states_connection ON connection_states (connection_id);
CREATE UNIQUE INDEX IF NOT EXISTS failing_connections_connection ON failing_connections (connection_id);
CREATE INDEX IF NOT EXISTS combos_id ON combos (id);
CREATE INDEX IF NOT EXISTS combos_name ON combos (name);
CREATE INDEX IF NOT EXISTS model_aliases_alias ON model_aliases (alias);
CREATE INDEX IF NOT EXISTS model_combo_mappings_id ON model_combo_mappings (id);
CREATE INDEX IF NOT EXISTS price_overrides_model ON price_overrides (provider, model);
CREATE INDEX IF NOT EXISTS outbound_proxies_target ON outbound_proxies (level, target);
CREATE INDEX IF NOT EXISTS search_providers_id ON search_providers (id);

CREATE INDEX IF NOT EXISTS audit_log_id ON audit_log (id);
CREATE INDEX IF NOT EXISTS audit_log_at ON audit_log (at_ms);
CREATE INDEX IF NOT EXISTS owner_bytes_owner ON owner_bytes (place, owner);
CREATE INDEX IF NOT EXISTS work_starts_item ON work_starts (kind, item_id);
CREATE INDEX IF NOT EXISTS work_starts_process ON work_starts (kind, process);

CREATE INDEX IF NOT EXISTS webhook_endpoints_id ON webhook_endpoints (id);
CREATE INDEX IF NOT EXISTS webhook_endpoints_owner ON webhook_endpoints (surface, owner);
CREATE INDEX IF NOT EXISTS webhook_secrets_endpoint ON webhook_secrets (endpoint_id);
CREATE INDEX IF NOT EXISTS webhook_messages_id ON webhook_messages (id);
CREATE INDEX IF NOT EXISTS webhook_deliveries_id ON webhook_deliveries (id);
CREATE INDEX IF NOT EXISTS webhook_deliveries_endpoint ON webhook_deliveries (endpoint_id);
CREATE INDEX IF NOT EXISTS webhook_deliveries_message ON webhook_deliveries (message_id);
CREATE INDEX IF NOT EXISTS webhook_deliveries_due ON webhook_deliveries (state, next_attempt_at_ms);
CREATE INDEX IF NOT EXISTS webhook_attempts_delivery ON webhook_attempts (delivery_id);
CREATE INDEX IF NOT EXISTS webhook_attempts_endpoint ON webhook_attempts (endpoint_id);
CREATE INDEX IF NOT EXISTS service_jobs_id ON service_jobs (id);

CREATE INDEX IF NOT EXISTS files_id ON files (id);
CREATE INDEX IF NOT EXISTS files_owner ON files (owner);
CREATE INDEX IF NOT EXISTS batches_id ON batches (id);
CREATE INDEX IF NOT EXISTS batches_owner ON batches (owner);
CREATE INDEX IF NOT EXISTS responses_id ON responses (id);
CREATE UNIQUE INDEX IF NOT EXISTS response_segments_name ON response_segments (name);
CREATE INDEX IF NOT EXISTS responses_owner ON responses (owner);
CREATE INDEX IF NOT EXISTS responses_end ON responses (expires_at_ms);
CREATE INDEX IF NOT EXISTS responses_open ON responses (id) WHERE is_open;
CREATE INDEX IF NOT EXISTS response_events_response ON response_events (response_id);
CREATE INDEX IF NOT EXISTS video_operations_id ON video_operations (id);
CREATE INDEX IF NOT EXISTS video_files_id ON video_files (id);
CREATE INDEX IF NOT EXISTS video_files_operation ON video_files (operation_id);

CREATE INDEX IF NOT EXISTS scrape_jobs_id ON scrape_jobs (id);
CREATE INDEX IF NOT EXISTS scrape_jobs_owner ON scrape_jobs (owner);
CREATE INDEX IF NOT EXISTS scrape_frontier_job ON scrape_frontier (job_id, place);
CREATE INDEX IF NOT EXISTS scrape_pages_job ON scrape_pages (job_id, number);
CREATE INDEX IF NOT EXISTS scrape_cache_key ON scrape_cache (key);
CREATE INDEX IF NOT EXISTS scrape_cache_owner ON scrape_cache (owner);
CREATE INDEX IF NOT EXISTS scrape_cache_end ON scrape_cache (expires_at_ms);
CREATE INDEX IF NOT EXISTS scrape_endpoints_owner ON scrape_endpoints (owner);
CREATE INDEX IF NOT EXISTS scrape_css_schemas_key ON scrape_css_schemas (key);
CREATE INDEX IF NOT EXISTS scrape_maps_key ON scrape_maps (key);
CREATE INDEX IF NOT EXISTS scrape_seen_key ON scrape_seen (key);
CREATE INDEX IF NOT EXISTS scrape_calls_owner ON scrape_calls (owner, day);

CREATE INDEX IF NOT EXISTS agent_skills_id ON agent_skills (id);
CREATE INDEX IF NOT EXISTS agent_tasks_id ON agent_tasks (id);
CREATE INDEX IF NOT EXISTS agent_tasks_owner ON agent_tasks (owner);
CREATE INDEX IF NOT EXISTS agent_messages_task ON agent_messages (task_id, number);
CREATE INDEX IF NOT EXISTS reverse_tasks_id ON reverse_tasks (owner, id);
CREATE INDEX IF NOT EXISTS reverse_task_timeline_task ON reverse_task_timeline (owner, task_id);
CREATE INDEX IF NOT EXISTS reverse_task_evidence_task ON reverse_task_evidence (owner, task_id);
CREATE INDEX IF NOT EXISTS reverse_task_blocks_task ON reverse_task_blocks (owner, task_id);
CREATE INDEX IF NOT EXISTS reverse_task_runs_task ON reverse_task_runs (owner, task_id);

CREATE INDEX IF NOT EXISTS board_projects_id ON board_projects (id);
CREATE INDEX IF NOT EXISTS board_members_project ON board_members (project_id, user_id);
CREATE INDEX IF NOT EXISTS board_members_user ON board_members (user_id);
CREATE INDEX IF NOT EXISTS board_sprints_id ON board_sprints (id);
CREATE INDEX IF NOT EXISTS board_sprints_project ON board_sprints (project_id);
CREATE INDEX IF NOT EXISTS board_tags_id ON board_tags (id);
CREATE INDEX IF NOT EXISTS board_tags_project ON board_tags (project_id);
CREATE INDEX IF NOT EXISTS board_todos_id ON board_todos (id);
CREATE INDEX IF NOT EXISTS board_todos_project ON board_todos (project_id, rank);
CREATE INDEX IF NOT EXISTS board_todo_tags_todo ON board_todo_tags (todo_id);
CREATE INDEX IF NOT EXISTS board_todo_tags_tag ON board_todo_tags (tag_id);
