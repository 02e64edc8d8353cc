-- Where secrets of provider sign-ins may be sent: origins as JSON text. Null is a secret of an earlier version, which is bound to
-- the addresses in force when these are changed.

ALTER TABLE provider_clients ADD COLUMN secret_origins VARCHAR;
ALTER TABLE provider_sign_ins ADD COLUMN refresh_origins VARCHAR;
ALTER TABLE provider_sign_in_flows ADD COLUMN origins VARCHAR;
