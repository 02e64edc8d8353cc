"""Scraping: try an address, crawl a site and watch it, run saved sites. All of it for a key."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

import orjson
from starlette.responses import Response

from fairlead.dashboard.acting_key import KEY, KeyChoice, choose_key, required_key
from fairlead.dashboard.api import Refused
from fairlead.dashboard.form import Field, Group, make_form, read_values
from fairlead.dashboard.page import Action, Failure, FormFields, Page, Question, View, Visit

PLACE: Final = "/scraping"
ENDPOINT: Final = "scraping"
CRAWLS_SHOWN: Final = 20
PAGES_SHOWN: Final = 50
CONTENT_MAX: Final = 200_000
ACTIVE: Final = frozenset({"pending", "processing"})
MOODS: Final = {
    "completed": "good",
    "failed": "bad",
    "cancelled": "",
    "processing": "plain",
    "pending": "plain",
}
HEALTHS: Final = {"healthy": "good", "degraded": "warn"}
URL: Final = Field(
    "url", "Address", is_required=True, most=2048, example="https://example.org/page"
)
# The choices of the form, and the values of `useBrowser`; without a value the setting `scrapeBrowser` decides.
BROWSER_USES: Final[dict[str, bool | None]] = {"setting": None, "always": True, "never": False}
BROWSER: Final = Field(
    "useBrowser",
    "Render in a browser",
    "choice",
    "For pages that scripts make.",
    options=(("setting", "as the settings say"), ("always", "always"), ("never", "never")),
)
TRY: Final = (
    URL,
    Field(
        "extractorFormat",
        "As",
        "choice",
        options=(("markdown", "markdown"), ("text", "text"), ("html", "HTML")),
    ),
    Field("onlyMainContent", "Main content only", "switch", "Without menus and footers."),
    BROWSER,
    Field("skipCache", "Skip the cache", "switch", "Read the page again."),
)
CRAWL: Final = (
    URL,
    Field("limit", "At most", "whole", "Empty: the default.", "pages"),
    Field(
        "maxDepth", "Links followed", "whole", "From the first page; empty: the default.", "deep"
    ),
    Field("includePaths", "Only paths like", "lines", "One pattern in a line."),
    Field("excludePaths", "Never paths like", "lines", "One pattern in a line."),
    Field("crawlEntireDomain", "The whole host", "switch", "Not only pages below the address."),
    Field("allowSubdomains", "Subdomains too", "switch"),
    BROWSER,
)


async def show(visit: Visit) -> View:
    """The form of a trial scrape, and its result."""
    return await _try_view(visit, None)


async def attempt(visit: Visit, typed: FormFields) -> View:
    """Reads one page now."""
    api = await required_key(visit, ENDPOINT, typed)
    values = read_options(TRY, typed)
    url = values.pop("url")
    with _by_field(TRY):
        document = await api.send("POST", "/api/scrape", {"url": url, "options": values})
    visit = replace(visit, failure=Failure("", "", None, typed))
    view = await _try_view(visit, document)
    return replace(view, fields={**view.fields, "failure": None})


def read_options(fields: tuple[Field, ...], typed: FormFields) -> dict[str, Any]:
    """The values of the form by the names of the API; `useBrowser` only if the person chose one."""
    values = read_values(fields, typed)
    use = BROWSER_USES[values.pop("useBrowser", "setting")]
    return values if use is None else {**values, "useBrowser": use}


async def show_crawls(visit: Visit) -> View:
    """The crawls of a key, newest first."""
    choice = await choose_key(visit, ENDPOINT)
    crawls: list[dict[str, Any]] = []
    if choice.api is not None:
        crawls = (await choice.api.get("/api/crawl", limit=CRAWLS_SHOWN))["crawls"]
    fields = {**_chosen(choice), "crawls": crawls, "moods": MOODS, "title": "Crawls"}
    return View("crawls.html", fields, ("crawls",))


async def show_new_crawl(visit: Visit) -> View:
    """The form of a crawl."""
    choice = await choose_key(visit, ENDPOINT, visit.failure.typed if visit.failure else None)
    values = {"url": visit.query.get("url", "")}
    group = Group("Crawl", CRAWL, is_open=True)
    form = make_form("crawl", (group,), values, visit.failure, **_hidden(choice))
    return View("crawl_new.html", {**_chosen(choice), "fields": form, "title": "New crawl"})


async def crawl(visit: Visit, typed: FormFields) -> str:
    """Starts the crawl."""
    api = await required_key(visit, ENDPOINT, typed)
    values = read_options(CRAWL, typed)
    body = {name: value for name, value in values.items() if value not in (None, [])}
    with _by_field(CRAWL):
        made = await api.send("POST", "/api/crawl", body)
    return f"{PLACE}/crawls/{made['id']}?{KEY}={quote(api.key_id)}"


async def show_crawl(visit: Visit) -> View:
    """How far a crawl is, and its pages in the order in which they ended."""
    choice = await choose_key(visit, ENDPOINT)
    api = await required_key(visit, ENDPOINT)
    skip = visit.query.get("skip", "0")
    skipped = int(skip) if skip.isdecimal() and len(skip) < 9 else 0
    path = f"/api/crawl/{visit.params['job_id']}"
    job, failures = await asyncio.gather(
        api.get(path, skip=skipped, limit=PAGES_SHOWN), api.get(f"{path}/errors")
    )
    pages, progress = job["jobs"], job["progress"]
    is_active = job["status"] in ACTIVE
    done = progress["completed"] + progress["failed"]
    fields = {
        **_chosen(choice),
        "job": job,
        "pages": [(each, _content(each)) for each in pages],
        "failures": failures["errors"][:PAGES_SHOWN],
        "progress": progress,
        "part": done / progress["total"] if progress["total"] else 0.0,
        "skipped": skipped,
        "next": choice.link("", skip=pages[-1]["id"]) if pages and "next" in job else None,
        "moods": MOODS,
        "is_active": is_active,
        "title": f"Crawl of {job['url']}",
    }
    return View("crawl.html", fields, () if skipped else ("state",))


async def confirm_cancel(visit: Visit, typed: FormFields) -> Question:
    """Names what cancelling does."""
    api = await required_key(visit, ENDPOINT, typed)
    page_url = f"/dashboard{PLACE}/crawls/{visit.params['job_id']}?{KEY}={quote(api.key_id)}"
    goes = [
        "Pages that were not read yet.",
        "Pages that were read are kept, and you can download them.",
    ]
    return Question("Cancel this crawl?", goes, "Cancel it", page_url)


async def cancel(visit: Visit, typed: FormFields) -> str:
    """Ends the crawl."""
    api = await required_key(visit, ENDPOINT, typed)
    await api.send("DELETE", f"/api/crawl/{visit.params['job_id']}")
    return f"{PLACE}/crawls/{visit.params['job_id']}?{KEY}={quote(api.key_id)}"


async def download(visit: Visit) -> Response:
    """The pages of a crawl as an archive."""
    api = await required_key(visit, ENDPOINT)
    path = f"/api/crawl/{visit.params['job_id']}"
    job = await api.get(path, limit=1)
    if not job["count"]:
        raise Refused(404, "The crawl has read no page yet.")
    return api.answer_of(f"{path}/download/zip")


async def show_sites(visit: Visit) -> View:
    """The saved sites of a key."""
    choice = await choose_key(visit, ENDPOINT)
    sites: list[dict[str, Any]] = []
    if choice.api is not None:
        sites = (await choice.api.get("/api/sites"))["sites"]
    fields = {
        **_chosen(choice),
        "sites": sites,
        "healths": HEALTHS,
        "records": None,
        "title": "Saved sites",
    }
    return View("sites.html", fields)


async def run(visit: Visit, typed: FormFields) -> View:
    """Runs a saved site with its defaults, and shows its records."""
    api = await required_key(visit, ENDPOINT, typed)
    path = f"/api/sites/{typed.get('site') or 'none'}"
    site = (await api.get(path))["site"]
    answer = await api.send("POST", f"{path}/run", {"params": site.get("sampleParams") or {}})
    visit = replace(visit, query={**visit.query, KEY: api.key_id})
    view = await show_sites(visit)
    text = orjson.dumps(answer.get("data"), option=orjson.OPT_INDENT_2).decode()
    shown = {"site": site, "answer": answer, "text": text[:CONTENT_MAX]}
    return replace(view, fields={**view.fields, "records": shown})


async def confirm_delete(visit: Visit, typed: FormFields) -> Question:
    """Names the site that goes."""
    api = await required_key(visit, ENDPOINT, typed)
    site = (await api.get(f"/api/sites/{typed.get('site') or 'none'}"))["site"]
    goes = [f"The saved site {site['name']}: programs that run it get 404.", "Its selectors."]
    page_url = f"/dashboard{PLACE}/sites?{KEY}={quote(api.key_id)}"
    return Question(f"Delete the site {site['name']}?", goes, "Delete it", page_url)


async def delete(visit: Visit, typed: FormFields) -> str:
    """Deletes a saved site."""
    api = await required_key(visit, ENDPOINT, typed)
    await api.send("DELETE", f"/api/sites/{typed.get('site') or 'none'}")
    return f"{PLACE}/sites?{KEY}={quote(api.key_id)}"


async def _try_view(visit: Visit, document: dict[str, Any] | None) -> View:
    typed = visit.failure.typed if visit.failure else None
    choice = await choose_key(visit, ENDPOINT, typed)
    group = Group("Try an address", TRY, is_open=True)
    values = {"extractorFormat": "markdown", "onlyMainContent": True}
    failure = visit.failure
    if document is not None and failure is not None:
        # The form stays as it was sent.
        failure = replace(failure, action="try")
    form = make_form("try", (group,), values, failure, **_hidden(choice))
    content = None if document is None else str(document.get("content") or "")
    fields = {
        **_chosen(choice),
        "fields": form,
        "document": document,
        "content": None if content is None else content[:CONTENT_MAX],
        "length": len(content or ""),
    }
    return View("scraping.html", fields)


@contextmanager
def _by_field(fields: Iterable[Field]) -> Iterator[None]:
    """Names the field of a refusal: errors of scraping say it with their first word alone."""
    try:
        yield
    except Refused as refusal:
        name = refusal.message.partition(" ")[0].rpartition(".")[2]
        if refusal.param is not None or name not in {field.name for field in fields}:
            raise
        raise Refused(refusal.status, refusal.message, name) from None


def _content(page: dict[str, Any]) -> str | None:
    document = page.get("document")
    return None if document is None else str(document.get("content") or "")[:20_000]


def _chosen(choice: KeyChoice) -> dict[str, Any]:
    return {"choice": choice, "key_name": KEY}


def _hidden(choice: KeyChoice) -> dict[str, str]:
    return {KEY: choice.chosen["id"]} if choice.chosen else {}


PAGES = (
    Page(
        "scraping",
        "Scraping",
        show,
        group="Build",
        rank=6,
        icon="scraping",
        actions={"try": Action(attempt, "The page was read.")},
    ),
    Page("scraping/crawls", "Crawls", show_crawls),
    Page(
        "scraping/crawls/new",
        "New crawl",
        show_new_crawl,
        actions={"crawl": Action(crawl, "The crawl has started.")},
    ),
    Page(
        "scraping/crawls/{job_id}",
        "Crawl",
        show_crawl,
        actions={"cancel": Action(cancel, "The crawl has ended.", confirm_cancel)},
    ),
    Page("scraping/crawls/{job_id}/pages.zip", "Pages", download),
    Page(
        "scraping/sites",
        "Saved sites",
        show_sites,
        actions={
            "run": Action(run, "The site was run."),
            "delete": Action(delete, "The site was deleted.", confirm_delete),
        },
    ),
)
