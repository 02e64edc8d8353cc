-- Whether what a key asks and is answered is kept for people to read.

ALTER TABLE keys ADD COLUMN capture_bodies BOOLEAN DEFAULT FALSE;
