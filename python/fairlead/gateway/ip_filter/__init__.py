"""From which addresses the gateway may be called."""
