-- How many bytes each key keeps, counted as they come and anew now and then: `place` is what they are kept in, and the owner
-- '' is everybody. Pages and copies of pages know their size, so that counting reads no documents.

CREATE TABLE owner_bytes (
    place VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    bytes BIGINT NOT NULL,
    counted_at_ms BIGINT NOT NULL
);

ALTER TABLE scrape_pages ADD COLUMN size_bytes BIGINT DEFAULT 0;
UPDATE scrape_pages SET size_bytes = coalesce(strlen(document), 0);

ALTER TABLE scrape_cache ADD COLUMN size_bytes BIGINT DEFAULT 0;
UPDATE scrape_cache SET size_bytes = strlen(document);

-- They were characters.
UPDATE responses SET size_bytes = strlen(input) + strlen(response);
UPDATE responses SET size_bytes = size_bytes + strlen(e.events)
FROM response_events e WHERE e.response_id = responses.id;
