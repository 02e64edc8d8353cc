-- Reverse tasks: where each stands, what was done and found, what stopped it, and how far its last run came.

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
