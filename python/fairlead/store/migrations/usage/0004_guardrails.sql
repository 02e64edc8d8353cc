-- What guardrails found in a request or its answer: `name;found=kind;action=action`, separated by commas.

ALTER TABLE requests ADD COLUMN guardrails VARCHAR;
