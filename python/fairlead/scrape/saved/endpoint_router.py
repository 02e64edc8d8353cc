"""Routes of saved endpoints: save a scrape or an extraction, list, run and delete it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import ValidationError
from starlette.requests import Request

from fairlead.errors import InvalidRequest, NotFound
from fairlead.moment import iso, moment_of
from fairlead.scrape.address import check_url
from fairlead.scrape.calls import answer_deadline, extract_page, read_page
from fairlead.scrape.limits.owner import BaseDep, OwnerDep
from fairlead.scrape.requests.page import ExtractRequest, ScrapeRequest
from fairlead.scrape.requests.site import EndpointRequest
from fairlead.scrape.saved.table import (
    SavedCall,
    delete_saved,
    find_saved,
    insert_saved,
    list_saved,
    new_saved,
)
from fairlead.scrape.saved.template import check_template, fill
from fairlead.scrape.scraper import Scraper, scraper_of
from fairlead.store.file import Connection
from fairlead.store.services import ServicesDep

router = APIRouter(prefix="/api", tags=["scraping"])


@router.post(
    "/endpoints",
    status_code=201,
    summary="Save a scrape or an extraction as an endpoint",
    responses={409: {"description": "The slug is taken, or there are too many."}},
)
async def save(
    fields: EndpointRequest, services: ServicesDep, owner: OwnerDep, base: BaseDep
) -> dict[str, Any]:
    """Saves an endpoint, which answers under `GET /api/endpoints/{slug}` with its parameters in the query."""
    await _check(fields, scraper_of(services), owner)
    saved = new_saved(owner, "endpoint", fields.slug, fields.model_dump(mode="json", by_alias=True))
    await services.state.database.write(lambda con: insert_saved(con, saved, named="slug"))
    return {"success": True, "endpoint": _view(saved, base)}


@router.get("/endpoints", summary="List saved endpoints")
async def endpoints(services: ServicesDep, owner: OwnerDep, base: BaseDep) -> dict[str, Any]:
    """The caller's endpoints, by slug."""
    found = await services.state.read(lambda con: list_saved(con, "endpoint", owner))
    return {
        "success": True,
        "count": len(found),
        "endpoints": [_view(saved, base) for saved in found],
    }


@router.get("/endpoints/{slug}", summary="Run a saved endpoint")
async def run(
    slug: str, services: ServicesDep, owner: OwnerDep, request: Request
) -> dict[str, Any]:
    """Answers as `POST /api/scrape`, or with a schema as `POST /api/extract-schema`."""
    saved = await services.state.read(lambda con: _found(con, owner, slug))
    fields = EndpointRequest.model_validate(saved.definition)
    filled = fill(fields.url, fields.params, dict(request.query_params), place="the query")
    url = check_url(filled, scraper_of(services).egress)
    if fields.schema_ is None:
        whole = ScrapeRequest.model_validate({"url": url, "options": fields.options})
        scraped = await read_page(services, url, whole.options, owner)
        return {"success": True, **scraped.document}
    async with answer_deadline():
        extract = ExtractRequest.model_validate(
            {"url": url, "schema": fields.schema_, "options": fields.options}
        )
        return await extract_page(services, extract, owner)


@router.delete("/endpoints/{slug}", summary="Delete a saved endpoint")
async def delete(slug: str, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """Deletes an endpoint, which no longer answers when this returns."""
    await services.state.database.write(lambda con: delete_saved(con, _found(con, owner, slug)))
    return {"success": True, "message": "Endpoint deleted"}


def _found(con: Connection, owner: str, slug: str) -> SavedCall:
    saved = find_saved(con, "endpoint", owner, slug=slug)
    if saved is None:
        raise NotFound("Endpoint not found", param="slug")
    return saved


async def _check(fields: EndpointRequest, scraper: Scraper, owner: str) -> None:
    check_template(fields.url, fields.params, scraper.egress)
    if fields.schema_ is not None:
        await scraper.schema(fields.schema_, owner).check()
    kind = ScrapeRequest if fields.schema_ is None else ExtractRequest
    body = {"url": "http://x", "options": fields.options} | (
        {} if fields.schema_ is None else {"schema": fields.schema_}
    )
    if fields.options.get("headers") or fields.options.get("cookies"):
        raise InvalidRequest(
            "options of a saved endpoint must not have headers or cookies: use a scrape or a browser session.",
            param="options",
        )
    try:
        kind.model_validate(body)
    except ValidationError as fault:
        first = fault.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise InvalidRequest(f"{where} {first['msg']}.", param=where) from None


def _view(saved: SavedCall, base: str) -> dict[str, Any]:
    return {
        "id": saved.id,
        **saved.definition,
        "createdAt": iso(moment_of(saved.created_at_ms)),
        "endpointUrl": f"{base}/api/endpoints/{saved.slug}",
    }
