-- Several controls on one database (PostgreSQL): the newest snapshot, compiled by one of them for all, and which of
-- them live with which snapshot in force. A file has one control, and these stay empty.

CREATE TABLE published_snapshots (
    version BIGINT NOT NULL,
    document BLOB NOT NULL
);

CREATE TABLE control_nodes (
    id VARCHAR NOT NULL,
    host VARCHAR NOT NULL,
    fairlead_version VARCHAR NOT NULL,
    started_at_ms BIGINT NOT NULL,
    seen_at_ms BIGINT NOT NULL,
    applied_version BIGINT NOT NULL
);
