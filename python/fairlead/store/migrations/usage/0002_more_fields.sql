-- What a record tells besides: its sticky session, its combo, the response cache, its place in a trace.

ALTER TABLE requests ADD COLUMN session_id VARCHAR;
ALTER TABLE requests ADD COLUMN combo VARCHAR;
ALTER TABLE requests ADD COLUMN strategy VARCHAR;
ALTER TABLE requests ADD COLUMN cache VARCHAR;
ALTER TABLE requests ADD COLUMN cache_kind VARCHAR;
ALTER TABLE requests ADD COLUMN cost_saved_usd_micros BIGINT;
ALTER TABLE requests ADD COLUMN trace_id VARCHAR;
ALTER TABLE requests ADD COLUMN span_id VARCHAR;
ALTER TABLE requests ADD COLUMN parent_span_id VARCHAR;
