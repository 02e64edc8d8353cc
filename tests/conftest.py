"""What every test may ask for: running gateways, scripted upstreams, and a lane between the two."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from tests.support.databases import CHOSEN_STORE, STORES
from tests.support.gateway_pool import GatewayPool
from tests.support.listener import Listener
from tests.support.processes import DEFAULTS, FRONTS, Gateway, Lane, start_gateway
from tests.support.spread import NOTES, Spread, new_notes, write_needs
from tests.support.standin import start_standin
from tests.support.upstream import Upstream

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

    from tests.support.postgresql import PostgresqlServer

# On a busy machine time says nothing about an example. Tests say how many examples they want.
hypothesis_settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
hypothesis_settings.load_profile("any machine")

NOTES_PATH = pytest.StashKey[Path]()
GATEWAYS = {"gateway_pool", "gateways"}
"""The fixtures behind every fixture that has a running gateway."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--front",
        choices=FRONTS,
        default=os.environ.get("FAIRLEAD_TEST_FRONT") or "granian",
        help="who has the socket of the gateways that tests start (also FAIRLEAD_TEST_FRONT)",
    )

    parser.addoption(
        "--store",
        choices=STORES,
        default=os.environ.get("FAIRLEAD_TEST_STORE") or "embedded",
        help="where control keeps its state in the gateways that tests start (also FAIRLEAD_TEST_STORE)",
    )


def pytest_unconfigure(config: pytest.Config) -> None:
    # What is frozen at the end of a process is never freed, and libraries report it as a leak.
    gc.unfreeze()
    CHOSEN_STORE.end()
    notes = config.stash.get(NOTES_PATH, None)
    if notes is not None:
        notes.unlink(missing_ok=True)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Names the file in which a worker of `pytest -n` writes what the tests need."""
    stash = node.config.stash
    if stash.get(NOTES_PATH, None) is None:
        stash[NOTES_PATH] = new_notes()
    node.workerinput[NOTES] = str(stash[NOTES_PATH])


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collects without looking for garbage: what is made stays, a million objects that no later search looks at."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """The first worker writes what the tests need, before it says that it has collected them."""
    given = getattr(session.config, "workerinput", {})
    if given.get("workerid") == "gw0":
        write_needs(Path(given[NOTES]), session.items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Spread | None:
    """With `--dist loadfile`, files that need one gateway run in one process."""
    return (
        Spread(config, log, config.stash[NOTES_PATH]) if config.option.dist == "loadfile" else None
    )


def pytest_configure(config: pytest.Config) -> None:
    CHOSEN_STORE.name = config.getoption("--store")
    front = config.getoption("--front")
    if front not in FRONTS:
        raise pytest.UsageError(f"FAIRLEAD_TEST_FRONT is {front!r}: set it to granian or native")
    DEFAULTS["FAIRLEAD_FRONT"] = front


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    is_cluster = config.getoption("--store") == "cluster"
    if is_cluster:
        _leave_out_what_calls_no_gateway(config, items)
    for item in items:
        for mark in item.iter_markers("front_only"):
            _skip_unless_all_are(mark, config, item)
        for mark in item.iter_markers("one_node"):
            if is_cluster:
                item.add_marker(pytest.mark.skip(reason=f"one node only: {mark.kwargs['reason']}"))


def _leave_out_what_calls_no_gateway(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test of management in its own process does over a cluster what it does over PostgreSQL."""
    without = [each for each in items if not GATEWAYS.intersection(_fixtures(each))]
    items[:] = [each for each in items if each not in without]
    config.hook.pytest_deselected(items=without)


def _fixtures(item: pytest.Item) -> list[str]:
    """The fixtures that a test uses, and those that these use."""
    return item.fixturenames if isinstance(item, pytest.Function) else []


def _skip_unless_all_are(mark: pytest.Mark, config: pytest.Config, item: pytest.Item) -> None:
    """A test of one front is skipped, with its reason, where the gateways run the other, or both."""
    only, reason = mark.args[0], mark.kwargs["reason"]
    if config.getoption("--store") == "cluster" or only != config.getoption("--front"):
        item.add_marker(pytest.mark.skip(reason=f"{only} only: {reason}"))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """What runs the tests that are coroutines."""
    return "asyncio"


@pytest.fixture(scope="session")
def gateway_pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayPool]:
    """Running gateways by configuration, for the fixture `gateway` of a file that wants another than this one."""
    with GatewayPool(tmp_path_factory.mktemp("gateways")) as pool:
        yield pool


@pytest.fixture(scope="module")
def gateway(gateway_pool: GatewayPool) -> Iterator[Gateway]:
    """The gateway of all tests that leave it as they found it: keys required, everything else as shipped.

    A test may kill one of its planes if it waits until the plane is back.
    """
    with gateway_pool.lease() as running:
        yield running
        # A plane that was killed has come back as another process.
        running.remember_processes()


@pytest.fixture(scope="module")
def hasty_gateway(gateway_pool: GatewayPool) -> Iterator[Gateway]:
    """A gateway that loses patience soon: heartbeats after 200 ms, bodies may pause for 1 s."""
    patience = {"FAIRLEAD_HEARTBEAT_MS": "200", "FAIRLEAD_BODY_IDLE_MS": "1000"}
    with gateway_pool.lease(**patience) as running:
        yield running


@pytest.fixture
def gateways(tmp_path: Path) -> Iterator[Callable[..., Gateway]]:
    """Starts gateways for one test that kills, fills or drains them; takes what `start_gateway` takes."""
    with ExitStack() as running:
        yield lambda *flags, **environment: running.enter_context(
            start_gateway(tmp_path, *flags, **environment)
        )


@pytest.fixture(scope="session")
def standin_url() -> Iterator[str]:
    """The address of a stand-in provider in a process of its own, without `/v1`; it keeps nothing of its callers."""
    with start_standin() as url:
        yield url


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[Listener]:
    """A listener for webhooks in a process of its own."""
    with Listener(tmp_path) as running:
        yield running


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as running:
        yield running


@pytest.fixture
def lane(gateway: Gateway, upstream: Upstream) -> Lane:
    """One connection to `upstream` on the shared gateway, under a prefix that no other test has."""
    return gateway.add_lane(upstream)


@pytest.fixture(scope="session")
def postgresql() -> PostgresqlServer:
    """A PostgreSQL server with a migrated template; the tests that need one are skipped where it is not installed."""
    from tests.support.postgresql import programs

    if programs() is None:
        pytest.skip("PostgreSQL is not installed")
    return CHOSEN_STORE.server()


@pytest.fixture
def database_url(postgresql: PostgresqlServer) -> Iterator[str]:
    """A database of the newest schema, for one test."""
    url = postgresql.migrated()
    yield url
    postgresql.drop(url)
