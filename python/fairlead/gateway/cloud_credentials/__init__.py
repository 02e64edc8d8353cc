"""Credentials that the gateway obtains from the machine or the cloud that it runs in, and renews before they end."""
