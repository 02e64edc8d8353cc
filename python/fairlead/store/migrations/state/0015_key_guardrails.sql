-- Guardrails that a key opts out of.

ALTER TABLE keys ADD COLUMN disabled_guardrails VARCHAR[] DEFAULT [];
