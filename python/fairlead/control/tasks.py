"""The table of control's background tasks, and how they start.

Most packages have work only after a request has stored some. Such a task waits, with nothing imported, until its
module is imported (by the router that stores the work), or starts at once when its tables have rows.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import Final

from fairlead.store.file import Connection
from fairlead.store.services import BackgroundTask, Services

# How soon work of a control that died before this one had any of its kind is found.
LOOK_EVERY_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class TaskEntry:
    """A task of the module's `TASKS`, by name.

    It starts with control, unless `begins_with` names modules: then once one of them is imported, or with control if
    one of `tables` (of the state database) has rows.
    """

    name: str
    module: str
    begins_with: str | tuple[str, ...] | None = None
    tables: tuple[str, ...] = ()
    once: bool = False
    """Whether only one of several controls on one database may run it at a time: timers. Tasks that work on items
    run everywhere, since each item is leased.
    """
    of_many: bool = False
    """Whether there is only work for it where several nodes may share one database."""

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules that it begins with."""
        named = self.begins_with
        return (named,) if isinstance(named, str) else named or ()


_SCRAPING: Final = (
    *("scrape_jobs", "scrape_cache", "scrape_maps", "scrape_seen", "scrape_calls"),
    "scrape_css_schemas",
)

TASKS: Final = (
    TaskEntry("session-sweep", "fairlead.identity.tasks"),
    TaskEntry("oauth-sweep", "fairlead.identity.tasks"),
    TaskEntry("audit.retention", "fairlead.gateway.audit.retention", once=True),
    TaskEntry("backups.schedule", "fairlead.gateway.backups.schedule", once=True),
    TaskEntry("providers.probes", "fairlead.gateway.providers.probe_task", once=True),
    TaskEntry("providers.usage", "fairlead.gateway.provider_usage.task", once=True),
    TaskEntry("usage.ingest", "fairlead.usage.tasks"),
    TaskEntry("usage.log", "fairlead.usage.tasks", of_many=True),
    TaskEntry("usage.retention", "fairlead.usage.tasks"),
    TaskEntry("usage.merging", "fairlead.usage.tasks"),
    TaskEntry("usage.traces", "fairlead.usage.tasks"),
    TaskEntry("usage.bodies", "fairlead.usage.tasks"),
    TaskEntry("usage.refused-callers", "fairlead.usage.tasks"),
    TaskEntry("health.turns", "fairlead.gateway.health.transitions"),
    TaskEntry("resilience.states", "fairlead.gateway.resilience.persistence"),
    TaskEntry("webhooks.deliver", "fairlead.webhooks.tasks"),
    TaskEntry("webhooks.retention", "fairlead.webhooks.tasks", once=True),
    TaskEntry(
        "mail.deliver",
        "fairlead.gateway.mail.tasks",
        "fairlead.gateway.mail.router",
        ("mail_server",),
    ),
    TaskEntry("dashboard.live", "fairlead.dashboard.tasks", "fairlead.dashboard.live"),
    TaskEntry(
        "scrape.jobs",
        "fairlead.scrape.tasks",
        "fairlead.scrape.jobs.runner",
        _SCRAPING,
    ),
    TaskEntry("scrape.sessions", "fairlead.scrape.tasks", "fairlead.scrape.browser.sessions"),
    TaskEntry("scrape.calls", "fairlead.scrape.tasks", "fairlead.scrape.limits.quota"),
    TaskEntry(
        "agents.tasks",
        "fairlead.agents.tasks",
        "fairlead.agents.runner",
        ("agent_tasks",),
    ),
    TaskEntry(
        "gateway.batches",
        "fairlead.gateway.batches.tasks",
        # Its sweep deletes files, uploads and cached contents, which are stored without a batch too.
        (
            "fairlead.gateway.batches.runner",
            "fairlead.gateway.files.router",
            "fairlead.gateway.files.google_files_router",
            "fairlead.gateway.cached_contents.router",
        ),
        ("batches", "files", "uploads", "google_uploads", "cached_contents"),
    ),
    TaskEntry("gateway.responses.intake", "fairlead.gateway.responses.intake"),
    TaskEntry(
        "gateway.responses",
        "fairlead.gateway.responses.background",
        "fairlead.gateway.responses.background",
        ("responses",),
    ),
    TaskEntry(
        "gateway.sign-ins",
        "fairlead.gateway.sign_in.refresher",
        "fairlead.gateway.sign_in.refresher",
        ("provider_sign_ins",),
        once=True,
    ),
    TaskEntry(
        "gateway.cloud-credentials",
        "fairlead.gateway.cloud_credentials.refresher",
        "fairlead.gateway.cloud_credentials.refresher",
        ("obtained_credentials",),
        once=True,
    ),
    TaskEntry(
        "gateway.videos",
        "fairlead.gateway.videos.runner",
        "fairlead.gateway.videos.runner",
        ("video_operations",),
    ),
)


class TaskStarter:
    """Runs the tasks of the table."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._imported = {entry.modules: asyncio.Event() for entry in TASKS if entry.modules}
        self.notice_imports()

    def notice_imports(self) -> None:
        """Starts the tasks whose modules have been imported; called after each import of routers."""
        for modules, event in self._imported.items():
            if any(module in sys.modules for module in modules):
                event.set()

    async def run(self, entry: TaskEntry) -> None:
        """Runs one task, from when there may be work for it until it ends."""
        if entry.modules:
            await self._begin_of_work(self._imported[entry.modules], entry.tables)
        module = await asyncio.to_thread(import_module, entry.module)
        tasks: tuple[BackgroundTask, ...] = module.TASKS
        task = next(task for task in tasks if task.name == entry.name)
        peers = self._services.peers
        if entry.once and peers is not None:
            await peers.alone(entry.name, lambda: task.run(self._services))
        else:
            await task.run(self._services)

    async def _begin_of_work(self, imported: asyncio.Event, tables: tuple[str, ...]) -> None:
        """Waits until there may be work. Other controls of the database store work without notifying this one."""
        while not imported.is_set() and not await self._has_rows(tables):
            within_s = None if self._services.peers is None or not tables else LOOK_EVERY_S
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await imported.wait()

    async def _has_rows(self, tables: tuple[str, ...]) -> bool:
        if not tables:
            return False
        return await self._services.state.read(lambda con: _any_row(con, tables))


def _any_row(con: Connection, tables: tuple[str, ...]) -> bool:
    return any(
        con.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None  # noqa: S608 - a name of the table above
        for table in tables
    )
