-- Why a prompt was not read from the provider's cache: the conversation that a request belongs to, hashes of the segments of its prompt
-- (`tools.system.turns.hash.hash...`, the newest turn first), and what a million tokens cost less if the cache has them, in
-- micro-dollars. Only for models with a lower price for cached input. No prompt is stored.

ALTER TABLE requests ADD COLUMN conversation VARCHAR;
ALTER TABLE requests ADD COLUMN prompt_hashes VARCHAR;
ALTER TABLE requests ADD COLUMN cache_read_saving BIGINT;
