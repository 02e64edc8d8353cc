-- How the response cache answered: exact, vector, joined; null where a provider did.

ALTER TABLE requests ADD COLUMN cache VARCHAR;
