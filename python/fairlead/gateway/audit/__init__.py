"""The audit log: who changed what through the management API, from where, and when."""
