-- Functions that statements call by DuckDB's names. The schema `fairlead` stands before `pg_catalog` in the path, so
-- that `lower` is this one. Simple SQL functions are put into the statement that calls them: they cost nothing, and
-- an index is used through them.

CREATE OR REPLACE FUNCTION strlen(text) RETURNS BIGINT
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT octet_length($1)::BIGINT';

CREATE OR REPLACE FUNCTION list_contains(anycompatiblearray, anycompatible) RETURNS BOOLEAN
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT $2 = ANY ($1)';

CREATE OR REPLACE FUNCTION list_position(anycompatiblearray, anycompatible) RETURNS INTEGER
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT array_position($1, $2)';

CREATE OR REPLACE FUNCTION contains(text, text) RETURNS BOOLEAN
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT position($2 IN $1) > 0';

CREATE OR REPLACE FUNCTION uuid() RETURNS UUID
LANGUAGE sql VOLATILE AS 'SELECT gen_random_uuid()';

CREATE OR REPLACE FUNCTION epoch_ms(timestamptz) RETURNS BIGINT
LANGUAGE sql STABLE PARALLEL SAFE AS 'SELECT floor(extract(epoch FROM $1) * 1000)::BIGINT';

-- Columns are compared by bytes, and PostgreSQL lowers A to Z only for such; DuckDB lowers letters of every script.
-- (It has no final sigma: a name in Greek capitals may be lowered otherwise at its end.)
CREATE OR REPLACE FUNCTION lower(text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT pg_catalog.lower($1 COLLATE pg_catalog."und-x-icu")';
