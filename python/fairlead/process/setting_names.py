"""The environment variable and the flag that set a field of the settings."""

from __future__ import annotations

# Fields that have a flag as well. Secrets have none: every process list shows a command line.
FLAGS = frozenset(
    (
        "host",
        "port",
        "workers",
        "role",
        "front",
        "threads",
        "data_dir",
        "demo",
        "allow_unauthenticated_bind",
        "tls_certificate",
        "tls_key",
    )
)


# Variables that have no prefix.
_BARE = frozenset(
    (
        "REQUIRE_API_KEY",
        "INITIAL_PASSWORD",
        "GATEWAY_ALLOW_CONTAINER_CONFIG_WRITE",
        "CLI_CONFIG_HOME",
    )
)


def variable_of(name: str) -> str:
    """The environment variable of a field."""
    bare = name.upper()
    if bare in _BARE or bare.startswith("SERVICE_"):
        return bare
    for group in ("AUTH", "ISSUER"):
        if bare.startswith(f"{group}__"):
            return bare
        if bare.startswith(f"{group}_"):
            return f"{group}__{bare.removeprefix(f'{group}_')}"
    return f"FAIRLEAD_{bare}"


def flag_of(name: str) -> str | None:
    """The flag of a field, None where `fairlead serve` has none."""
    return f"--{name.lower().replace('_', '-')}" if name.lower() in FLAGS else None


def flag_and_variable(name: str) -> str:
    """Both ways to set a field, for messages: `--data-dir (FAIRLEAD_DATA_DIR)`."""
    flag = flag_of(name)
    return f"{flag} ({variable_of(name)})" if flag else variable_of(name)
