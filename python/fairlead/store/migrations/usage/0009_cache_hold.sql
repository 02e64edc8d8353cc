-- Whether a conversation stayed with the target whose provider has it in its prompt cache.

ALTER TABLE requests ADD COLUMN cache_hold VARCHAR;
