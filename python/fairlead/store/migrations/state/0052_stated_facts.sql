-- What an operator states about all models of a node: JSON by the names of `StatedFacts`.
ALTER TABLE provider_nodes ADD COLUMN stated VARCHAR DEFAULT '{}';

-- What happens to requests of a group's keys that have members which the provider does not accept: `refuse`, `drop`, or as the group
-- above says.
ALTER TABLE key_groups ADD COLUMN inexpressible VARCHAR;
