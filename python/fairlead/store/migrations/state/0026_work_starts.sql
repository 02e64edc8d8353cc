-- How often work on an item was begun by processes that did not end in good order: `starts` since it last came further, `total` in
-- all. `process` is the one that began it last, `steps` how far it had come then.

CREATE TABLE work_starts (
    kind VARCHAR NOT NULL,
    item_id VARCHAR NOT NULL,
    process VARCHAR NOT NULL,
    starts INTEGER NOT NULL,
    total INTEGER NOT NULL,
    steps BIGINT NOT NULL
);
