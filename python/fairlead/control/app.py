"""The control plane's application: opens files, starts tasks, serves and shuts down.

`create` is the server's factory and reads `FAIRLEAD_CONTROL_CONFIG`. `build` takes a configuration.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import structlog
from fastapi import FastAPI, Response
from fastapi.responses import JSONResponse

from fairlead import __version__
from fairlead.coding_tools.acp.provider import AcpProvider
from fairlead.control.answers import install_handlers
from fairlead.control.audit import AuditTrail
from fairlead.control.background import Background
from fairlead.control.commands import Commands
from fairlead.control.console_navigation import ConsoleNavigation
from fairlead.control.gate import Gate
from fairlead.control.link import LINK_PATH, Link
from fairlead.control.logs import configure_logs
from fairlead.control.publisher import Publisher
from fairlead.control.relay_nodes import Deliveries
from fairlead.control.router_loader import LoadOnDemand, RouterLoader
from fairlead.control.snapshot import NodePart, compile_for_all, compile_snapshot
from fairlead.control.snapshot_lag import SnapshotLag
from fairlead.control.start_memory import release_start_memory
from fairlead.control.tasks import TASKS, TaskStarter
from fairlead.control.workers import Workers
from fairlead.errors import Refusal
from fairlead.gateway.cluster.relay_node import RelayNodes
from fairlead.gateway.files.fill import FILL_PATH, Fill
from fairlead.gateway.responses.internal import CONTEXT_PATH, KEEP_PATH, Responses
from fairlead.identity.introspection.middleware import bearer_middleware
from fairlead.identity.issuer.issuer import Issuer, open_issuer
from fairlead.identity.issuer.listen import listen
from fairlead.identity.local_token import local_token_hash
from fairlead.identity.oauth.service import open_oauth
from fairlead.identity.operator import SignedInOperator
from fairlead.identity.sign_in import SignIn
from fairlead.identity.users import ensure_owner
from fairlead.moment import now_ms
from fairlead.net.egress import Egress
from fairlead.process.node_paths import BODIES_PATH, NODE_PATH, RESPONSES_PATH, SEGMENTS_PATH
from fairlead.settings import ControlConfig
from fairlead.store.arrivals import Arrivals
from fairlead.store.blobs.location import close_blobs
from fairlead.store.database import Database
from fairlead.store.key_check import check_key
from fairlead.store.pending_restore import finish_restore, last_restore
from fairlead.store.prepare import MIGRATIONS, make_data_dir, usage_path
from fairlead.store.sealer import decode_key, load_key, load_sealer
from fairlead.store.services import Services
from fairlead.store.state import State
from fairlead.store.state_database import open_state
from fairlead.usage.budgets.spent import SpentSums
from fairlead.usage.ingestion.shared_log import SharedLog
from fairlead.usage.telemetry.metrics import counters_of

# Time in which waiting requests can still be answered that the database is unavailable.
LEAVE_AFTER_S = 0.5
EXIT_STORAGE_LOST = 74
# When tasks have had their first turn.
SETTLED_AFTER_S = 2.0

log = structlog.get_logger("fairlead.control")


def create() -> FastAPI:
    """The server's factory: the application configured by the environment."""
    configure_logs()
    os.umask(0o077)
    # Removed, so that child processes do not inherit the instance's secrets.
    document = os.environ.pop("FAIRLEAD_CONTROL_CONFIG")
    return build(ControlConfig.model_validate_json(document), owns_process=True)


def build(config: ControlConfig, *, owns_process: bool = False) -> FastAPI:
    """The application behind its gate, opening its files when it is started.

    `owns_process` says that the process does nothing else: once started, it gives the memory of the
    start back.
    """
    app, loader = _app()
    # A process alone has relays, and knows how many if they are on its node.
    expected = config.workers if owns_process and config.role == "all" else 0
    workers = Workers(expected=expected)
    app.router.lifespan_context = partial(_lifespan, config, workers, loader, owns_process)
    app.add_middleware(LoadOnDemand, loader=loader)
    app.add_middleware(AuditTrail)
    app.add_middleware(SnapshotLag)
    app.add_middleware(
        Gate,
        link_token=config.link_token.get_secret_value(),
        workers=workers,
        node_token=config.node_token.get_secret_value() if config.node_token else None,
    )
    return app


def routed_app() -> FastAPI:
    """Every route and error handler, without files: enough to describe the API."""
    app, loader = _app()
    loader.load_all()
    return app


def _app() -> tuple[FastAPI, RouterLoader]:
    app = FastAPI(
        title="fairlead",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    install_handlers(app)
    app.state.navigation = ConsoleNavigation()

    @app.get("/api/openapi.json", summary="This API as an OpenAPI document", tags=["openapi"])
    async def openapi() -> Response:
        if app.openapi_schema is None:
            app.openapi_schema = await asyncio.to_thread(_description)
        return JSONResponse(app.openapi_schema)

    return app, RouterLoader(app)


def _description() -> dict[str, Any]:
    """The OpenAPI description, from a separate application, so that the serving one is not blocked."""
    from fairlead.control.openapi import openapi_document  # noqa: PLC0415 - only when it is needed

    return openapi_document(routed_app())


@asynccontextmanager
async def _lifespan(
    config: ControlConfig,
    workers: Workers,
    loader: RouterLoader,
    owns_process: bool,
    app: FastAPI,
) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        services, issuer = await _open_stores(config, stack)
        background = Background()
        publisher = await _make_publisher(config, services, workers, background)
        _leave_on_fatal(services, issuer)
        if issuer is not None:
            background.start("identity.issuer", partial(listen, issuer, config))
        services.bearers = bearers = bearer_middleware(config, issuer)
        stack.push_async_callback(bearers.close)
        commands = Commands(workers)
        services.workers = workers.reports
        services.connections_changed = workers.connections_changed
        services.command = commands.ask
        services.tasks = background.reports
        services.snapshot_version = lambda: publisher.current.version
        sign_in = SignIn()
        services.operator = SignedInOperator(services, sign_in)
        services.tool_access = await open_oauth(services)
        if config.initial_password is not None:
            await services.state.database.write(ensure_owner)
        stack.push_async_callback(close_blobs, services)
        app.state.services = services
        app.state.sign_in = sign_in
        _add_relay_routes(app, services, _make_link(services, publisher, workers, commands))
        background.start("publisher", publisher.run)
        _start_tasks(services, loader, background)
        log.info("control started", data_dir=str(config.data_dir), version=__version__)
        if owns_process:
            loop = asyncio.get_running_loop()
            settled = loop.call_later(SETTLED_AFTER_S, release_start_memory)
            stack.callback(settled.cancel)
        try:
            yield
        finally:
            publisher.close()
            await background.stop()
            sign_in.checker.close()
            await sign_in.providers.close()
    log.info("control stopped")


async def _open_stores(
    config: ControlConfig, stack: AsyncExitStack
) -> tuple[Services, Issuer | None]:
    """The databases, and the issuer where one is enabled; `stack` closes them."""
    try:
        return await _open(config, stack), await _open_issuer(config, stack)
    except Refusal as refusal:
        log.error("control does not start", reason=refusal.sentence)
        raise


async def _make_publisher(
    config: ControlConfig, services: Services, workers: Workers, background: Background
) -> Publisher:
    """The publisher of snapshots, called after each commit; with a shared database, of the other nodes' too."""
    token_hash = await asyncio.to_thread(local_token_hash, config.data_dir)
    node = NodePart(token_hash, AcpProvider.of(config, services.state.sealer, now_ms()))
    compile_ = partial(compile_for_all if config.database_url else compile_snapshot, node)
    publisher = Publisher(services.state.database, compile_, config.data_dir, workers)
    if config.database_url is not None:
        from fairlead.control.cluster import LocalNode, join  # noqa: PLC0415 - an extra

        here = LocalNode(services, publisher, workers, node)
        join(config.database_url.get_secret_value(), services, publisher, here, background)
    services.state.on_commit(publisher.publish)
    return publisher


def _leave_on_fatal(services: Services, issuer: Issuer | None) -> None:
    for database in (services.state.database, services.usage):
        database.on_fatal = leave
    if issuer is not None:
        issuer.database.on_fatal = leave


def _make_link(
    services: Services, publisher: Publisher, workers: Workers, commands: Commands
) -> Link:
    spool = services.config.data_dir / "spool"
    spending = SpentSums(services.usage, spool, services.state, SharedLog.of(services))
    spending.wanted = services.singleton(Arrivals, Arrivals).wanted
    relay_nodes = services.singleton(RelayNodes, RelayNodes)
    return Link(publisher, workers, spending, counters_of(services), commands, relay_nodes)


def _add_relay_routes(app: FastAPI, services: Services, link: Link) -> None:
    """The routes that only relays call: the link, stored responses, and files that requests name."""
    app.add_route(LINK_PATH, link.answer, methods=["POST"], include_in_schema=False)
    responses = Responses(services)
    app.add_route(KEEP_PATH, responses.store, methods=["POST"], include_in_schema=False)
    app.add_route(CONTEXT_PATH, responses.context, methods=["POST"], include_in_schema=False)
    app.add_route(FILL_PATH, Fill(services).fill, methods=["POST"], include_in_schema=False)
    if services.config.role == "control":
        deliveries = Deliveries(services)
        app.add_route(NODE_PATH, deliveries.note, methods=["POST"], include_in_schema=False)
        app.add_route(SEGMENTS_PATH, deliveries.segment, methods=["POST"], include_in_schema=False)
        app.add_route(BODIES_PATH, deliveries.body, methods=["POST"], include_in_schema=False)
        app.add_route(
            RESPONSES_PATH, deliveries.responses, methods=["POST"], include_in_schema=False
        )


def _start_tasks(services: Services, loader: RouterLoader, background: Background) -> None:
    """Starts the table of tasks; those of several nodes only with a shared database."""
    starter = TaskStarter(services)
    loader.on_load(starter.notice_imports)
    for entry in TASKS:
        if services.config.database_url is not None or not entry.of_many:
            background.start(entry.name, partial(starter.run, entry))


def leave() -> None:
    """Ends this process soon, with an exit status like a crash, so that the supervisor restarts it.

    Called when the database engine has failed for good, and after a restore. Acknowledged writes are stored.
    Meanwhile relays serve from their snapshot, and usage waits in the spool.
    """
    log.warning("control restarts, to open the database again")
    asyncio.get_running_loop().call_later(LEAVE_AFTER_S, os._exit, EXIT_STORAGE_LOST)


async def _open_issuer(config: ControlConfig, stack: AsyncExitStack) -> Issuer | None:
    if not config.issuer_enabled:
        return None
    given, other = _keys(config)
    key = await asyncio.to_thread(load_key, config.data_dir, given)
    try:
        issuer = open_issuer(config.data_dir, key, config.issuer_own_url, config.issuer_token_ttl_s)
        return await stack.enter_async_context(issuer)
    except Refusal:
        if other is None:
            raise
    # Its clients' secrets are hashed with the key that it began with, and cannot be hashed again.
    key = decode_key(other)
    issuer = open_issuer(config.data_dir, key, config.issuer_own_url, config.issuer_token_ttl_s)
    return await stack.enter_async_context(issuer)


def _keys(config: ControlConfig) -> tuple[str | None, str | None]:
    """The configured key of secrets, and the other key during a key change."""
    given, other = config.secret_key, config.other_secret_key
    return (
        None if given is None else given.get_secret_value(),
        None if other is None else other.get_secret_value(),
    )


async def _open(config: ControlConfig, stack: AsyncExitStack) -> Services:
    await asyncio.to_thread(make_data_dir, config.data_dir)
    sealer = await asyncio.to_thread(load_sealer, config.data_dir, *_keys(config))
    process = secrets.token_hex(8)
    url = config.database_url.get_secret_value() if config.database_url else None
    state = await asyncio.to_thread(open_state, config.data_dir, url, process)
    stack.push_async_callback(state.close)
    note = await state.read(last_restore)
    await asyncio.to_thread(finish_restore, config.data_dir, note)
    usage = await asyncio.to_thread(
        Database.open, usage_path(config.data_dir), MIGRATIONS / "usage"
    )
    stack.push_async_callback(usage.close)
    await state.write(lambda con: check_key(con, sealer))
    egress = Egress(config.allow_private_fetch)
    stack.callback(egress.close)
    return Services(
        config=config,
        data_dir=config.data_dir,
        state=State(state, sealer),
        usage=usage,
        egress=egress,
        process=process,
    )
