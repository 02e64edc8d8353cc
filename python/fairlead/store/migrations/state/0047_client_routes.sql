-- Message batches, in Anthropic's API: the beta features that a batch was created with, and how many of its requests expired.
ALTER TABLE batches ADD COLUMN betas VARCHAR;
ALTER TABLE batches ADD COLUMN expired INTEGER DEFAULT 0;

-- The media type that a file was uploaded with.
ALTER TABLE files ADD COLUMN mime_type VARCHAR;

-- Conversations that responses are added to. `metadata` and `item` are JSON; the items of a conversation are in the order of their
-- positions, the next of which is `next_position`.
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

-- Files that are uploaded in parts. Contents of parts are stored as those of files are, by the id of the part; `file_id` is the
-- file that a completed upload became.
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

-- Uploads in Google's API, a piece at a time: `token_hash` is of the secret in the address that pieces are sent to.
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

-- The beginning of requests that Google's clients store: `content` is a JSON object with the members of a generateContent request.
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
