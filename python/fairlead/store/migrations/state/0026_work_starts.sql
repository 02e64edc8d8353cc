-- How often work on an item was begun by processes that did not end in good order. `process` is the one that began it last.

CREATE TABLE work_starts (
    kind VARCHAR NOT NULL,
    item_id VARCHAR NOT NULL,
    process VARCHAR NOT NULL,
    starts INTEGER NOT NULL
);
