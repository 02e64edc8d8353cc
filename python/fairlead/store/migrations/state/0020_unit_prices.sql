-- Prices of what is no token: a picture, a second of a recording, a page, a search, a million characters read aloud; micro-dollars.

ALTER TABLE price_overrides ADD COLUMN per_image BIGINT;
ALTER TABLE price_overrides ADD COLUMN per_second BIGINT;
ALTER TABLE price_overrides ADD COLUMN per_page BIGINT;
ALTER TABLE price_overrides ADD COLUMN per_query BIGINT;
ALTER TABLE price_overrides ADD COLUMN per_million_characters BIGINT;

ALTER TABLE search_providers ADD COLUMN per_query BIGINT;
