-- Refresh tokens and pending second factors were sealed with the id of the record alone, like the credential and the confirmed second
-- factor beside them. While this row exists, the next start seals them for their own purpose (`store/seal_purposes.py`).
INSERT INTO meta (name, value) SELECT 'seal_purposes', 'pending'
WHERE EXISTS (SELECT 1 FROM provider_sign_ins WHERE refresh_sealed IS NOT NULL)
   OR EXISTS (SELECT 1 FROM users WHERE totp_pending_sealed IS NOT NULL);
