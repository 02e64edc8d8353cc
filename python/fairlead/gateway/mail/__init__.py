"""Mails about events: the mail server, its routes, and the task that sends."""
