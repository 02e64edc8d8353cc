-- What happens to a key's requests that have members which the provider does not accept: `refuse`, `drop`, or as the connection says.
ALTER TABLE keys ADD COLUMN inexpressible VARCHAR;
