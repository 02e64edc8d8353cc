-- Which identity joins the account once the second factor was right; null for a sign-in with a password, and for an
-- identity that is the account's already.
ALTER TABLE login_challenges ADD COLUMN way VARCHAR DEFAULT 'password';
ALTER TABLE login_challenges ADD COLUMN oidc_issuer VARCHAR;
ALTER TABLE login_challenges ADD COLUMN oidc_subject VARCHAR;
