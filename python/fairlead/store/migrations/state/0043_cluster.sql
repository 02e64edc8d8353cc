-- Several controls on one database: which of them works on which item, until when, and what each tells of itself. A file
-- has one control, and this stays empty.

CREATE TABLE work_leases (
    kind VARCHAR NOT NULL,
    item_id VARCHAR NOT NULL,
    holder VARCHAR NOT NULL,
    token VARCHAR NOT NULL,
    expires_at_ms BIGINT NOT NULL
);

ALTER TABLE control_nodes ADD COLUMN report VARCHAR;
