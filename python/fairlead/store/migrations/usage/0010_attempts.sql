-- How a request came to its answer: when its targets were chosen, milliseconds after its admission, and the attempts that failed,
-- as `connection;kind;end;model` separated by commas.

ALTER TABLE requests ADD COLUMN chosen_ms DOUBLE;
ALTER TABLE requests ADD COLUMN failed_attempts VARCHAR;
