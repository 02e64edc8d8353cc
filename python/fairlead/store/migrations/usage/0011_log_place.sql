-- Up to where this database has followed the log that the nodes of one PostgreSQL database share; empty at a node by itself.

CREATE TABLE log_place (log_id VARCHAR NOT NULL, position BIGINT NOT NULL, segment VARCHAR NOT NULL);
