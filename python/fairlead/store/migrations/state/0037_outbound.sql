-- Outbound proxies by level (`global`, `provider`, `combo`, `key`): `target` is what one is set for, empty for all. With the scheme
-- `direct` the level says that no proxy is used. The login is sealed with `<level>:<target>`.

CREATE TABLE outbound_proxies (
    level VARCHAR NOT NULL,
    target VARCHAR NOT NULL,
    scheme VARCHAR NOT NULL,
    host VARCHAR NOT NULL,
    port INTEGER NOT NULL,
    login_sealed BLOB
);

-- Which proxy the relay chose for a video: asking for it goes the same way.
ALTER TABLE video_operations ADD COLUMN proxy VARCHAR;

-- From where a key may be used, as addresses and networks; empty for everywhere.
ALTER TABLE keys ADD COLUMN ip_allowlist VARCHAR[] DEFAULT [];
