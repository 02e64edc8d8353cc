"""A saved site: an address with parameters, its records, and the result of its last run."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr

from fairlead.errors import FairleadError, InvalidRequest
from fairlead.moment import iso, moment_of, now_ms
from fairlead.scrape.address import check_url
from fairlead.scrape.calls import answer_deadline
from fairlead.scrape.css.records import RecordsPage, RecordsResult, extract_records
from fairlead.scrape.css.schema import AutoOptions, RecordsRequest
from fairlead.scrape.requests.fields import RequestBody, SessionId
from fairlead.scrape.saved.table import SavedCall, record_run
from fairlead.scrape.saved.template import Parameters, Template, fill
from fairlead.scrape.scraper import scraper_of
from fairlead.store.services import Services

# Errors of a page, its session or the model have these statuses and fail the run; limits and defects are passed on.
FAILURES: Final = frozenset([400, 404, 502, 504])

SentValues = Annotated[
    dict[str, Annotated[StrictStr, Field(max_length=500)] | StrictInt | StrictFloat],
    Field(max_length=20),
]


class SiteRequest(RecordsRequest):
    """A site to be saved."""

    name: Annotated[StrictStr, Field(pattern=r"^[a-z0-9_]{1,48}$")]
    url: Template
    params: Parameters = Field({})
    sample_params: SentValues = Field({}, description="Values with which the site is verified.")
    session_id: SessionId = None
    verify: StrictBool = Field(
        False, description="Whether it is run with `sampleParams` once it is saved."
    )
    options: AutoOptions = AutoOptions()


class RunRequest(RequestBody):
    """A run of a saved site."""

    params: SentValues = Field({})
    force_reheal: StrictBool = False


class VerifyRequest(RequestBody):
    """A run with the sample parameters, of which `params` replaces some."""

    params: SentValues = Field({})


def site_key(saved: SavedCall) -> str:
    """The key under which a site's selectors are stored."""
    return f"site:{saved.id}"


def site_address(services: Services, body: SiteRequest, sent: SentValues) -> str:
    """The site's address filled with these values; `InvalidRequest` for an address that is refused."""
    values = {name: str(value) for name, value in sent.items()}
    filled = fill(body.url, body.params, values, place="params")
    return check_url(filled, scraper_of(services).egress)


async def run_site(
    services: Services,
    saved: SavedCall,
    sent: SentValues,
    *,
    force_reheal: bool = False,
    is_fresh: bool = False,
) -> dict[str, Any]:
    """Runs a site and stores how it went; the answer of an extraction. A run that failed is `InvalidRequest`."""
    body = SiteRequest.model_validate(saved.definition)
    url = site_address(services, body, sent)
    options = body.options
    if body.session_id is not None:
        options = options.model_copy(update={"session_id": body.session_id})
    if is_fresh:
        options = options.model_copy(update={"skip_cache": True})
    try:
        async with answer_deadline():
            page = RecordsPage(saved.owner, url, options, site_key(saved))
            extracted = await extract_records(services, page, body, force_reheal=force_reheal)
    except FairleadError as fault:
        await _record_run(services, saved, {"health": "degraded", "error": fault.message})
        if fault.status not in FAILURES:
            raise
        raise InvalidRequest(
            fault.message,
            param=fault.param,
            extra={"url": url, "reason": fault.kind, **fault.extra},
        ) from None
    view = {"name": saved.slug, **extracted.view()}
    await _record_run(services, saved, _run_summary(extracted))
    return view


def site_view(saved: SavedCall, base: str) -> dict[str, Any]:
    """A site as the API shows it: its definition, and how the last run went."""
    definition = {name: value for name, value in saved.definition.items() if name != "verify"}
    last_run = saved.last_run
    return {
        "id": saved.id,
        **definition,
        "createdAt": iso(moment_of(saved.created_at_ms)),
        "runUrl": f"{base}/api/sites/by-name/{saved.slug}/run",
        "health": last_run["health"] if last_run else "unknown",
        "lastRun": last_run,
    }


def _run_summary(extracted: RecordsResult) -> dict[str, Any]:
    view = extracted.view()
    names = ("health", "fieldFillRatio", "recordCount", "source", "healed")
    return {name: view[name] for name in names}


async def _record_run(services: Services, saved: SavedCall, run: dict[str, Any]) -> None:
    summary = {"at": iso(moment_of(now_ms())), **run}
    await services.state.database.write(lambda con: record_run(con, saved.id, summary))
