-- Responses that are worked on in the background: a row is there before its answer is (`is_open`), and what was told of it as
-- a stream is kept for who reads on later, as a JSON list of events.

ALTER TABLE responses ADD COLUMN is_open BOOLEAN DEFAULT false;

CREATE TABLE response_events (
    response_id VARCHAR NOT NULL,
    events VARCHAR NOT NULL
);
