-- The project board, and the static tokens by which people's tools reach it.

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

-- `rank` sorts the todos of a project, in any status; see fairlead/board/rank.py.
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

CREATE TABLE static_tokens (
    id VARCHAR NOT NULL,
    user_id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    hash VARCHAR NOT NULL,
    preview VARCHAR NOT NULL,
    created_at_ms BIGINT NOT NULL,
    revoked_at_ms BIGINT
);
