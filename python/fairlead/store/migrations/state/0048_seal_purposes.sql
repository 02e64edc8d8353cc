-- Refresh tokens and pending second factors were sealed with the id of the record alone, like the credential and the confirmed second
-- factor beside them. While this row exists, the next start seals them for their own purpose (`store/seal_purposes.py`).
INSERT INTO meta (name, value) VALUES ('seal_purposes', 'pending');
