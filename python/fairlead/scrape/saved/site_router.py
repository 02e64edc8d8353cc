"""Routes of saved sites: save, list, run, verify, delete."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body

from fairlead.errors import FairleadError, NotFound
from fairlead.scrape.css.records import check_selectors
from fairlead.scrape.css.table import forget_css_schema
from fairlead.scrape.limits.owner import BaseDep, OwnerDep
from fairlead.scrape.saved.site import (
    RunRequest,
    SentValues,
    SiteRequest,
    VerifyRequest,
    run_site,
    site_address,
    site_key,
    site_view,
)
from fairlead.scrape.saved.table import (
    SavedCall,
    delete_saved,
    find_saved,
    insert_saved,
    list_saved,
    new_saved,
)
from fairlead.scrape.saved.template import check_template
from fairlead.scrape.scraper import scraper_of
from fairlead.store.file import Connection
from fairlead.store.services import Services, ServicesDep

router = APIRouter(prefix="/api/sites", tags=["scraping"])

RunBody = Annotated[RunRequest | None, Body()]
VerifyBody = Annotated[VerifyRequest | None, Body()]


@router.post(
    "",
    status_code=201,
    summary="Save a site as an endpoint that gives records",
    responses={409: {"description": "The name is taken, or there are too many."}},
)
async def save(
    body: SiteRequest, services: ServicesDep, owner: OwnerDep, base: BaseDep
) -> dict[str, Any]:
    """Saves a site, which runs under `POST /api/sites/{id}/run`. With `verify` it is run at once, and
    `verification` has the outcome; it is saved either way.
    """
    check_template(body.url, body.params, scraper_of(services).egress)
    if body.sample_params or body.verify:
        site_address(services, body, body.sample_params)
    if body.css_schema is not None:
        await check_selectors(services, body.css_schema)
    saved = new_saved(owner, "site", body.name, body.model_dump(mode="json", by_alias=True))
    await services.state.database.write(lambda con: insert_saved(con, saved, named="name"))
    if not body.verify:
        return {"success": True, "site": site_view(saved, base)}
    verification = await _verification(services, saved, body.sample_params)
    verified = await services.state.read(lambda con: _found(con, owner, saved_id=saved.id))
    return {"success": True, "site": site_view(verified, base), "verification": verification}


@router.get("", summary="List saved sites")
async def sites(services: ServicesDep, owner: OwnerDep, base: BaseDep) -> dict[str, Any]:
    """The caller's sites, by name."""
    found = await services.state.read(lambda con: list_saved(con, "site", owner))
    return {"success": True, "count": len(found), "sites": [site_view(one, base) for one in found]}


@router.get("/{site_id}", summary="A saved site and how its last run went")
async def site(
    site_id: str, services: ServicesDep, owner: OwnerDep, base: BaseDep
) -> dict[str, Any]:
    """`health` is that of the last run: healthy, degraded, or unknown."""
    saved = await services.state.read(lambda con: _found(con, owner, saved_id=site_id))
    return {"success": True, "site": site_view(saved, base)}


@router.delete("/{site_id}", summary="Delete a saved site")
async def delete(site_id: str, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """Deletes a site with its stored selectors; it no longer runs when this returns."""

    def delete_site(con: Connection) -> None:
        saved = _found(con, owner, saved_id=site_id)
        delete_saved(con, saved)
        forget_css_schema(con, site_key(saved))

    await services.state.database.write(delete_site)
    return {"success": True, "message": "Site deleted"}


@router.post("/{site_id}/run", summary="Run a saved site")
async def run(
    site_id: str, services: ServicesDep, owner: OwnerDep, body: RunBody = None
) -> dict[str, Any]:
    """Answers as `POST /api/extract-auto`. A run that failed is 400."""
    saved = await services.state.read(lambda con: _found(con, owner, saved_id=site_id))
    body = body or RunRequest()
    return await run_site(services, saved, body.params, force_reheal=body.force_reheal)


@router.post("/by-name/{name}/run", summary="Run a saved site by its name")
async def run_by_name(
    name: str, services: ServicesDep, owner: OwnerDep, body: RunBody = None
) -> dict[str, Any]:
    """Answers as a run by the site's id."""
    saved = await services.state.read(lambda con: _found(con, owner, slug=name))
    body = body or RunRequest()
    return await run_site(services, saved, body.params, force_reheal=body.force_reheal)


@router.post("/{site_id}/verify", summary="Run a saved site with its sample parameters")
async def verify(
    site_id: str, services: ServicesDep, owner: OwnerDep, body: VerifyBody = None
) -> dict[str, Any]:
    """Answers like a run, but bypasses the page cache."""
    saved = await services.state.read(lambda con: _found(con, owner, saved_id=site_id))
    sent = {**saved.definition["sampleParams"], **(body.params if body else {})}
    return await run_site(services, saved, sent, is_fresh=True)


async def _verification(services: Services, saved: SavedCall, sent: SentValues) -> dict[str, Any]:
    try:
        return await run_site(services, saved, sent, is_fresh=True)
    except FairleadError as fault:
        return {"success": False, "error": fault.message, **fault.extra}


def _found(
    con: Connection, owner: str, *, slug: str | None = None, saved_id: str | None = None
) -> SavedCall:
    saved = find_saved(con, "site", owner, slug=slug, saved_id=saved_id)
    if saved is None:
        raise NotFound("Site not found", param="id" if slug is None else "name")
    return saved
