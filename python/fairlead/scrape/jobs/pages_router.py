"""The routes that crawls and batches share: lists, a job with its pages, failures, events, downloads, cancelling."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Query
from starlette.responses import Response, StreamingResponse

from fairlead.moment import iso, moment_of
from fairlead.scrape.jobs.completion import conclude
from fairlead.scrape.jobs.download import json_download, zip_download
from fairlead.scrape.jobs.events import job_events
from fairlead.scrape.jobs.runner import JobRunner
from fairlead.scrape.jobs.start import PATHS
from fairlead.scrape.jobs.table import (
    Job,
    Page,
    Progress,
    find_job,
    last_number,
    list_failures,
    list_jobs,
    list_pages,
    progress_of,
)
from fairlead.scrape.jobs.view import job_view, page_view, progress_view
from fairlead.scrape.limits.owner import BaseDep, OwnerDep
from fairlead.scrape.requests.jobs import LIMIT_MAX
from fairlead.store.file import Connection
from fairlead.store.services import Services, ServicesDep

Skip = Annotated[int, Query(ge=0, le=2**31)]
PageLimit = Annotated[int, Query(ge=1, le=100)]
ListLimit = Annotated[int, Query(ge=1, le=500)]
DownloadFormat = Annotated[
    Literal["markdown", "json"],
    Query(alias="format", description="Contents alone, or whole documents."),
]


class PagesRoutes:
    """Handlers for jobs of one kind, and the router that serves them."""

    def __init__(self, kind: Literal["crawl", "batch"], plural: str) -> None:
        self._kind = kind
        self._plural = plural

    async def list_all(
        self, services: ServicesDep, owner: OwnerDep, limit: ListLimit = 50
    ) -> dict[str, Any]:
        return await self._list(services, owner, limit, only_active=False)

    async def list_active(
        self, services: ServicesDep, owner: OwnerDep, limit: ListLimit = 50
    ) -> dict[str, Any]:
        return await self._list(services, owner, limit, only_active=True)

    async def show(
        self,
        job_id: str,
        services: ServicesDep,
        owner: OwnerDep,
        base: BaseDep,
        *,
        skip: Skip = 0,
        limit: PageLimit = 20,
    ) -> Response:
        def read_pages(con: Connection) -> tuple[Job, Progress, list[Page], int]:
            job = find_job(con, job_id, self._kind, owner)
            pages = list_pages(con, job.id, skip, limit)
            return job, progress_of(con, job), pages, last_number(con, job.id)

        job, progress, pages, last = await services.state.read(read_pages)
        view: dict[str, Any] = {
            "success": True,
            **job_view(job),
            self._kind: orjson.loads(job.options),
            "jobs": [page_view(page) for page in pages],
            "count": len(pages),
            "progress": progress_view(progress),
        }
        shown = pages[-1].number if pages else skip
        if shown < last or job.is_active:
            view["next"] = f"{base}{PATHS[self._kind]}/{job.id}?skip={shown}&limit={limit}"
        # Documents go out as they are stored: nothing reads them on the way.
        return Response(orjson.dumps(view), media_type="application/json")

    async def list_errors(
        self, job_id: str, services: ServicesDep, owner: OwnerDep
    ) -> dict[str, Any]:
        def read_failures(con: Connection) -> list[Page]:
            job = find_job(con, job_id, self._kind, owner)
            return list_failures(con, job.id, LIMIT_MAX)

        pages = await services.state.read(read_failures)
        return {
            "success": True,
            "count": len(pages),
            "errors": [
                {
                    "url": page.url,
                    "error": page.error,
                    "code": page.code,
                    "statusCode": page.http_status,
                    "at": iso(moment_of(page.at_ms)),
                }
                for page in pages
            ],
        }

    async def stream(
        self, job_id: str, services: ServicesDep, owner: OwnerDep, skip: Skip = 0
    ) -> StreamingResponse:
        await services.state.read(lambda con: find_job(con, job_id, self._kind, owner))
        return StreamingResponse(
            job_events(services, self._kind, job_id, owner, skip),
            media_type="text/event-stream",
            headers={"cache-control": "no-store", "x-accel-buffering": "no"},
        )

    async def download_json(
        self, job_id: str, services: ServicesDep, owner: OwnerDep
    ) -> StreamingResponse:
        return await json_download(services, self._kind, job_id, owner)

    async def download_zip(
        self,
        job_id: str,
        services: ServicesDep,
        owner: OwnerDep,
        form: DownloadFormat = "markdown",
    ) -> StreamingResponse:
        return await zip_download(services, self._kind, job_id, owner, form)

    async def cancel(self, job_id: str, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
        def conclude_job(con: Connection) -> str:
            job = find_job(con, job_id, self._kind, owner)
            return "cancelled" if conclude(con, job, "cancelled", None) else job.status

        status = await services.state.record(conclude_job)
        JobRunner.of(services).stop(job_id)
        return {"success": True, "id": job_id, "status": status}

    async def _list(
        self, services: Services, owner: str, limit: int, *, only_active: bool
    ) -> dict[str, Any]:
        jobs = await services.state.read(
            lambda con: list_jobs(con, self._kind, owner, limit, only_active=only_active)
        )
        return {"success": True, "count": len(jobs), self._plural: [job_view(job) for job in jobs]}

    def router(self) -> APIRouter:
        """The routes under the kind's path, each with its name, summary and description."""
        router = APIRouter(prefix=PATHS[self._kind], tags=["scraping"])
        # Lists first: `/{job_id}` would take `/active` for an id.
        self._add_lists(router)
        self._add_views(router)
        self._add_downloads(router)
        return router

    def _add_lists(self, router: APIRouter) -> None:
        add, plural = router.add_api_route, self._plural
        add(
            "",
            self.list_all,
            methods=["GET"],
            name=plural,
            summary=f"List {plural}",
            description=f"The caller's {plural}, newest first.",
        )
        if self._kind == "crawl":
            add(
                "/active",
                self.list_active,
                methods=["GET"],
                name=f"active_{plural}",
                summary=f"List {plural} that have not ended",
                description=f"The caller's {plural} in progress, newest first.",
            )

    def _add_views(self, router: APIRouter) -> None:
        add, kind = router.add_api_route, self._kind
        add(
            "/{job_id}",
            self.show,
            methods=["GET"],
            response_model=dict[str, Any],
            name=f"{kind}_status",
            summary=f"A {kind}, its progress and its pages",
            description="`jobs` are pages in the order in which they ended, at most `limit` and 8 MiB of them, or "
            "one;\n`next` is the address of the following ones.",
        )
        add(
            "/{job_id}/errors",
            self.list_errors,
            methods=["GET"],
            name=f"{kind}_errors",
            summary=f"The pages of a {kind} that failed",
            description="At most 10,000, in the order in which they failed.",
        )
        add(
            "/{job_id}/stream",
            self.stream,
            methods=["GET"],
            name=f"{kind}_stream",
            summary=f"A {kind}'s progress as it happens (SSE)",
            description="Events `open`, `page`, `progress`, and `done` or `error`; `skip` leaves out pages that "
            "were seen.",
        )
        add(
            "/{job_id}",
            self.cancel,
            methods=["DELETE"],
            name=f"cancel_{kind}",
            summary=f"Cancel a {kind}",
            description=f"Ends it now; what was read stays. A {kind} that has ended stays as it ended.",
        )

    def _add_downloads(self, router: APIRouter) -> None:
        add, kind = router.add_api_route, self._kind
        add(
            "/{job_id}/download/json",
            self.download_json,
            methods=["GET"],
            name=f"{kind}_json",
            summary=f"The pages of a {kind} as one JSON document",
            description=f"`{kind}Id`, `originUrl`, `pages`, `count`; 404 while there is no page.",
        )
        add(
            "/{job_id}/download/zip",
            self.download_zip,
            methods=["GET"],
            name=f"{kind}_zip",
            summary=f"The pages of a {kind} as an archive",
            description="A file for each page and `manifest.json`, which says which is which; 404 while there is "
            "no page.",
        )


crawl_pages = PagesRoutes("crawl", "crawls").router()
batch_pages = PagesRoutes("batch", "batches").router()

ROUTERS = (crawl_pages, batch_pages)
