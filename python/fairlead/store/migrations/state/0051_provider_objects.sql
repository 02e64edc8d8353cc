-- Ids of objects in the account at a provider that a key's requests may name.
ALTER TABLE keys ADD COLUMN allowed_provider_objects VARCHAR[] DEFAULT [];
