"""Routes of agents: start one, show its steps and its result."""

from __future__ import annotations

from typing import Any

import orjson
from fastapi import APIRouter

from fairlead.scrape.address import check_url
from fairlead.scrape.agent.run import STEPS_MAX, STEPS_MAX_BYTES
from fairlead.scrape.calls import resolve_model
from fairlead.scrape.jobs.start import new_job, start_job
from fairlead.scrape.jobs.table import FrontierEntry, Job, Page, PageSelection, find_job, list_pages
from fairlead.scrape.jobs.view import job_view
from fairlead.scrape.limits.owner import BaseDep, OwnerDep
from fairlead.scrape.requests.jobs import AgentRequest
from fairlead.scrape.scraper import scraper_of
from fairlead.store.file import Connection
from fairlead.store.services import ServicesDep

router = APIRouter(prefix="/api/agent", tags=["scraping"])


@router.post("", summary="Let a model work in a browser towards a goal, in the background")
async def start(
    ask: AgentRequest, services: ServicesDep, owner: OwnerDep, base: BaseDep
) -> dict[str, Any]:
    """A job's id and where to ask for it."""
    if ask.schema_ is not None:
        await scraper_of(services).schema(ask.schema_, owner).check()
    url = check_url(ask.url, scraper_of(services).egress)
    # The model is fixed now: a later change of the setting does not reach a job that has begun.
    request = ask.model_copy(update={"model": await resolve_model(services, ask.model, "model")})
    job = new_job("agent", owner, url, request, 1)
    return {**await start_job(services, job, [FrontierEntry(0, 0, url)], base), **ask.lowered}


@router.get("/{job_id}", summary="An agent's steps and its result")
async def show(job_id: str, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """`steps` as they are done; `result` when it has ended, also when it failed. `result.completed` is what
    the model says of the goal.
    """

    def read_steps(con: Connection) -> tuple[Job, list[Page]]:
        job = find_job(con, job_id, "agent", owner)
        return job, list_pages(
            con, job.id, 0, STEPS_MAX + 1, PageSelection(max_bytes=STEPS_MAX_BYTES)
        )

    job, pages = await services.state.read(read_steps)
    steps = [orjson.loads(page.document or "{}") for page in pages if page.place]
    view = {"success": True, **job_view(job)}
    ends = [orjson.loads(page.document or "{}") for page in pages if not page.place]
    if ends:
        view["result"] = {"goal": orjson.loads(job.options)["prompt"], **ends[0], "steps": steps}
    else:
        view["steps"] = steps
    return view
