-- The sentence that the caller of a failed request received, masked and of at most 300 bytes. What providers answered is in
-- `failed_attempts`, which has five more parts for each attempt where the provider answered: status, code, type, request id, message.

ALTER TABLE requests ADD COLUMN error_message VARCHAR;
