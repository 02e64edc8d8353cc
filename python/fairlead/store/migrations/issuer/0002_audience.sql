-- What a token was asked for, separated by spaces; empty where its client's own audience holds, whatever that is.
ALTER TABLE tokens ADD COLUMN audience VARCHAR DEFAULT '';
