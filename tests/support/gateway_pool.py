"""Running gateways that test files share: one for each configuration, kept until another one needs its place.

    @pytest.fixture(scope="module")
    def gateway(gateway_pool: GatewayPool) -> Iterator[Gateway]:
        with gateway_pool.lease(FAIRLEAD_ALLOW_PRIVATE_FETCH="127.0.0.0/8") as running:
            yield running

Who leases a gateway brings keys, nodes, connections and projects of its own, judges what the whole gateway counts by
differences, and leaves the operator's settings and the processes as they were. A test that cannot do so starts a
gateway for itself, with the fixture `gateways`.

With `pytest --store cluster` what is leased is an instance of two nodes (`tests/support/balanced.py`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tests.support.balanced import start_balanced
from tests.support.databases import CHOSEN_STORE
from tests.support.processes import Gateway, expect, start_gateway

Settings = Mapping[str, Any]
"""Operator settings, as `PATCH /api/settings` takes them."""

IDLE_GATEWAYS = {"cluster": 1}
"""How many gateways that nobody leases are kept running, by `pytest --store`."""
IDLE_GATEWAYS_USUALLY = 5
"""With other stores: each takes some 250 MB, and an instance of two nodes four times as much."""


@dataclass
class SharedGateway:
    """A gateway of the pool, what it was started with, and how many leases it has."""

    gateway: Gateway
    stack: ExitStack
    leases: int = 0


@dataclass
class GatewayPool:
    """Starts a gateway when a configuration is first asked for. A context manager; its end ends the gateways."""

    directory: Path
    """Where their data directories are made."""
    _shared: dict[tuple[object, ...], SharedGateway] = field(default_factory=dict)
    """By configuration; the least recently leased stands first."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        with ExitStack() as ending:
            for configuration in list(self._shared):
                ending.callback(self._end, configuration)

    @contextmanager
    def lease(
        self, *flags: str, settings: Settings | None = None, **environment: str
    ) -> Iterator[Gateway]:
        """The running gateway of a configuration: flags and environment as `start_gateway` takes them, and settings.

        At the end of a lease the settings must be what they were at its begin. Secrets are looked for in logs and
        files when the gateway is ended, over all its leases.
        """
        configuration = _configuration(flags, environment, settings)
        shared = self._shared.pop(configuration, None)
        if shared is not None and not shared.gateway.is_running():
            shared.stack.close()
            shared = None
        if shared is None:
            self._end_idle(keep=IDLE_GATEWAYS.get(CHOSEN_STORE.name, IDLE_GATEWAYS_USUALLY))
            shared = self._start(flags, environment, settings)
        self._shared[configuration] = shared
        gateway = shared.gateway
        before = operator_settings(gateway)
        shared.leases += 1
        try:
            yield gateway
        finally:
            shared.leases -= 1
        _assert_as_found(gateway, before)

    def _start(
        self, flags: tuple[str, ...], environment: dict[str, str], settings: Settings | None
    ) -> SharedGateway:
        with ExitStack() as stack:
            # What a flag says is of one process: a demo, a port.
            is_balanced = CHOSEN_STORE.name == "cluster" and not flags
            gateway: Gateway = stack.enter_context(
                start_balanced(self.directory, **environment)
                if is_balanced
                else start_gateway(self.directory, *flags, **environment)
            )
            if settings:
                expect(gateway.admin.patch("/api/settings", json=dict(settings)), 200)
            started = stack.pop_all()
        return SharedGateway(gateway, started)

    def _end_idle(self, *, keep: int) -> None:
        idle = [each for each, shared in self._shared.items() if not shared.leases]
        for configuration in idle[: max(0, len(idle) - keep)]:
            self._end(configuration)

    def _end(self, configuration: tuple[object, ...]) -> None:
        shared = self._shared.pop(configuration)
        with shared.stack:
            shared.gateway.assert_keeps_secrets()


def _configuration(
    flags: tuple[str, ...], environment: Mapping[str, str], settings: Settings | None
) -> tuple[object, ...]:
    return (flags, tuple(sorted(environment.items())), repr(sorted((settings or {}).items())))


def operator_settings(gateway: Gateway) -> dict[str, Any]:
    """What `/api/settings` shows, without the revision that counts changes."""
    shown: dict[str, Any] = expect(gateway.admin.get("/api/settings"), 200)
    return {name: value for name, value in shown.items() if name != "settingsRevision"}


def _assert_as_found(gateway: Gateway, before: dict[str, Any]) -> None:
    """Fails where the settings are not what they were, and puts them back for the next lease."""
    assert gateway.is_running(), f"the shared gateway was ended:\n{gateway.log[-4000:]}"
    after = operator_settings(gateway)
    changed = [name for name, value in before.items() if after[name] != value]
    if changed:
        with contextlib.suppress(AssertionError):
            restored = {name: before[name] for name in changed}
            expect(gateway.admin.patch("/api/settings", json=restored), 200)
    assert not changed, f"settings of the shared gateway were left changed: {', '.join(changed)}"
