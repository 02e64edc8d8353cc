-- What providers' own usage routes say of connections: figures as JSON, and when they were read. `key_sealed` is a key that such a
-- route asks for in place of the connection's own.

CREATE TABLE provider_usage (
    connection_id VARCHAR NOT NULL,
    key_sealed BLOB,
    figures VARCHAR NOT NULL,
    read_at_ms BIGINT,
    asked_at_ms BIGINT,
    failures INTEGER NOT NULL,
    last_error VARCHAR
);

-- Videos in OpenAI's words: what was asked for, as JSON; null where Google's words asked. `progress` is what the provider told last, 0 to 100.
ALTER TABLE video_operations ADD COLUMN request VARCHAR;
ALTER TABLE video_operations ADD COLUMN progress INTEGER;

-- When a provider was last asked for new tokens without its answer stored: whoever reads it later knows that the answer may be lost.
ALTER TABLE provider_sign_ins ADD COLUMN asked_at_ms BIGINT;
