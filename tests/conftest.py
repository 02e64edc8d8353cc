"""What every test may ask for: running gateways, scripted upstreams, and a lane between the two."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.processes import DEFAULTS, Gateway, Lane, start_gateway
from tests.support.upstream import Upstream


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--front",
        choices=("granian", "native"),
        default="granian",
        help="who has the socket of the gateways that tests start",
    )


def pytest_configure(config: pytest.Config) -> None:
    DEFAULTS["FAIRLEAD_FRONT"] = config.getoption("--front")


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """One gateway for all tests that leave it as they found it: keys required, everything else as shipped."""
    with start_gateway(tmp_path_factory.mktemp("gateway")) as running:
        yield running
        running.assert_keeps_secrets()


@pytest.fixture(scope="session")
def hasty_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway that loses patience soon: heartbeats after 200 ms, bodies may pause for 1 s."""
    with start_gateway(
        tmp_path_factory.mktemp("hasty"),
        FAIRLEAD_HEARTBEAT_MS="200",
        FAIRLEAD_BODY_IDLE_MS="1000",
    ) as running:
        yield running
        running.assert_keeps_secrets()


@pytest.fixture
def gateways(tmp_path: Path) -> Iterator[Callable[..., Gateway]]:
    """Starts gateways for one test that kills, fills or drains them; takes what `start_gateway` takes."""
    with ExitStack() as running:
        yield lambda *flags, **environment: running.enter_context(
            start_gateway(tmp_path, *flags, **environment)
        )


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as running:
        yield running


@pytest.fixture
def lane(gateway: Gateway, upstream: Upstream) -> Lane:
    """One connection to `upstream` on the shared gateway, under a prefix that no other test has."""
    return gateway.add_lane(upstream)
