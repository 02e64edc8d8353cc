"""Passwords that everybody knows, because they stand in examples."""

from __future__ import annotations

# Passwords that stand in examples of this and other products: knowing them is no proof of anything.
PLACEHOLDERS = frozenset(
    [
        "admin",
        "administrator",
        "change-me",
        "change_me",
        "changeit",
        "changeme",
        "changethis",
        "default",
        "demo",
        "example",
        "fairlead",
        "hunter2",
        "initial",
        "initialpassword",
        "initial_password",
        "letmein",
        "pass",
        "passw0rd",
        "password",
        "password1",
        "placeholder",
        "please-change",
        "replaceme",
        "root",
        "secret",
        "test",
        "todo",
        "welcome",
        "xxx",
        "your-password",
        "your_password",
        "yourpassword",
        "123456",
        "12345678",
        "123456789",
    ]
)


def is_placeholder(password: str) -> bool:
    """Whether the password is one that everybody knows."""
    return password.strip().lower() in PLACEHOLDERS
