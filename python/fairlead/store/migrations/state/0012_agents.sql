-- Agents: the skills that they are, the tasks that they were given, and what was said in them.

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
