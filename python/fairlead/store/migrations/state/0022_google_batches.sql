-- Batches that were asked for in Google's words: which words, what Google's clients call them, which of a key's batches go
-- first, and whether requests and answers stand in the calls themselves.

ALTER TABLE batches ADD COLUMN dialect VARCHAR DEFAULT 'openai';
ALTER TABLE batches ADD COLUMN display_name VARCHAR;
ALTER TABLE batches ADD COLUMN priority BIGINT DEFAULT 0;
ALTER TABLE batches ADD COLUMN is_inline BOOLEAN DEFAULT false;
