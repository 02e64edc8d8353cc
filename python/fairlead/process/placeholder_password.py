"""Well-known placeholder passwords from examples."""

from __future__ import annotations

# Passwords in examples of this and other products, which therefore prove nothing.
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
    """Whether the password is a well-known placeholder."""
    return password.strip().lower() in PLACEHOLDERS
