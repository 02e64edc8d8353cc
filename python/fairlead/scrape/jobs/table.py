"""The rows of jobs. Every function runs inside `state.read` or `state.database.write`."""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from typing import Final, Literal

from fairlead.errors import NotFound, RateLimited
from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.store.owner_bytes import DATABASE, claim_bytes
from fairlead.store.table import Table, read_number

Kind = Literal["scrape", "crawl", "batch", "llmstxt", "extract", "agent"]
EntryOutcome = Literal["stored", "known", "ended"]

ACTIVE: Final = ("pending", "processing", "scraping")
FIRST_STATUS: Final[dict[Kind, str]] = {
    "scrape": "pending",
    "crawl": "scraping",
    "batch": "processing",
    "llmstxt": "pending",
    "extract": "pending",
    "agent": "pending",
}
ACTIVE_MAX: Final = 1000
ACTIVE_OF_OWNER_MAX: Final = 100
# Bytes of documents that one read returns at most.
PAGES_MAX_BYTES: Final = 8 * 1024 * 1024

_ACTIVE = "status IN ('pending', 'processing', 'scraping')"


@dataclass(frozen=True, slots=True)
class Job:
    """A job. `options` is the request as JSON, and empty in lists (`job_with_options` reads it).

    `owner` is the key's id.
    """

    id: str
    kind: Kind
    owner: str
    status: str
    url: str
    options: str
    pages_max: int
    error: str | None
    created_at_ms: int
    ended_at_ms: int | None
    expires_at_ms: int | None
    secrets_sealed: bytes | None = None
    """Headers and cookies of the request (`jobs/secrets.py`). Deleted when the job ends."""

    @property
    def is_active(self) -> bool:
        return self.status in ACTIVE


@dataclass(frozen=True, slots=True)
class Page:
    """A page that was read or not: `status` is `completed` or `failed`. `number` counts from 1 in the
    order of ending; `document` is JSON text.
    """

    number: int
    place: int
    url: str
    status: str
    http_status: int | None
    error: str | None
    code: str | None
    document: str | None
    at_ms: int


_JOBS: Final = Table("scrape_jobs", Job)
_PAGES: Final = Table("scrape_pages", Page)
_JOB_IN_LIST = (
    ", ".join(_JOBS.columns)
    .replace("options", "'' AS options")
    .replace("secrets_sealed", "NULL AS secrets_sealed")
)


@dataclass(frozen=True, slots=True)
class FrontierEntry:
    """An address that a job knows: its place in the order of finding, and its distance from the start in links
    (`depth`).
    """

    place: int
    depth: int
    url: str


@dataclass(frozen=True, slots=True)
class JobEnd:
    """How and when a job ended, and when it expires."""

    status: str
    error: str | None
    at_ms: int
    expires_at_ms: int


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts of a job's pages; `total` is their sum."""

    completed: int
    failed: int
    pending: int

    @property
    def total(self) -> int:
        return self.completed + self.failed + self.pending


def insert_job(con: Connection, job: Job, entries: list[FrontierEntry]) -> None:
    """Stores a new job; raises `RateLimited` if too many are in progress, `OwnerStorageFull` and `StorageFull` if
    too much is stored.
    """
    active, own = con.execute(
        f"SELECT count(*), count(*) FILTER (WHERE owner = ?) FROM scrape_jobs WHERE {_ACTIVE}",
        [job.owner],
    ).fetchone() or (0, 0)
    if active >= ACTIVE_MAX or own >= ACTIVE_OF_OWNER_MAX:
        raise RateLimited("Too many jobs are in progress; wait for some to end.", retry_after_s=10)
    claim_bytes(
        con,
        DATABASE,
        job.owner,
        len(job.options.encode()) + sum(len(place.url) for place in entries),
    )
    _JOBS.insert(con, job)
    insert_entries(con, job.id, entries)


def insert_entries(con: Connection, job_id: str, entries: list[FrontierEntry]) -> None:
    """Adds addresses to a job's frontier."""
    if entries:
        con.execute(
            "INSERT INTO scrape_frontier (job_id, place, depth, url, status) "
            "SELECT ?, unnest(?::INTEGER[]), unnest(?::INTEGER[]), unnest(?::VARCHAR[]), 'pending'",
            [
                job_id,
                [p.place for p in entries],
                [p.depth for p in entries],
                [p.url for p in entries],
            ],
        )


def extend_frontier(con: Connection, job_id: str, found: list[FrontierEntry]) -> None:
    """Adds addresses that were found elsewhere than on a page, unless the job has ended."""
    if status_of(con, job_id) in ACTIVE:
        insert_entries(con, job_id, found)


def find_job(con: Connection, job_id: str, kind: Kind, owner: str) -> Job:
    """The owner's job; `NotFound`, also for another's."""
    mine = "id = ? AND kind = ? AND owner = ? AND (expires_at_ms IS NULL OR expires_at_ms > ?)"
    job = _JOBS.find(con, mine, job_id, kind, owner, now_ms())
    if job is None:
        what = {"crawl": "Crawl", "batch": "Batch"}.get(kind, "Job")
        raise NotFound(f"{what} not found", param="id")
    return job


def find_job_progress(con: Connection, job_id: str, kind: Kind, owner: str) -> tuple[Job, Progress]:
    """The owner's job and how far it is; `NotFound`, also for another's."""
    job = find_job(con, job_id, kind, owner)
    return job, progress_of(con, job)


def status_of(con: Connection, job_id: str) -> str | None:
    """The job's status; None when it is gone."""
    row = con.execute("SELECT status FROM scrape_jobs WHERE id = ?", [job_id]).fetchone()
    return None if row is None else str(row[0])


def known_jobs(con: Connection, job_ids: list[str]) -> set[str]:
    """The ids of jobs that are still stored."""
    rows = con.execute(
        "SELECT id FROM scrape_jobs WHERE list_contains(?::VARCHAR[], id)", [job_ids]
    ).fetchall()
    return {row[0] for row in rows}


def list_jobs(
    con: Connection, kind: Kind, owner: str, limit: int, *, only_active: bool = False
) -> list[Job]:
    """The owner's jobs, newest first, without their options."""
    rows = con.execute(
        f"SELECT {_JOB_IN_LIST} FROM scrape_jobs WHERE kind = ? AND owner = ? "
        f"{'AND ' + _ACTIVE if only_active else ''} ORDER BY created_at_ms DESC, id LIMIT ?",
        [kind, owner, limit],
    ).fetchall()
    return [Job(*row) for row in rows]


def active_jobs(con: Connection) -> list[Job]:
    """Every job that has not ended, oldest first, without their options: together they may be more
    than fits the memory.
    """
    rows = con.execute(
        f"SELECT {_JOB_IN_LIST} FROM scrape_jobs WHERE {_ACTIVE} ORDER BY created_at_ms, id"
    ).fetchall()
    return [Job(*row) for row in rows]


def count_pages(con: Connection, job_ids: list[str]) -> dict[str, int]:
    """How many pages of each job have ended."""
    found = con.execute(
        "SELECT job_id, count(*) FROM scrape_pages WHERE list_contains(?::VARCHAR[], job_id) GROUP BY job_id",
        [job_ids],
    ).fetchall()
    return dict.fromkeys(job_ids, 0) | {str(job_id): int(count) for job_id, count in found}


def job_with_options(con: Connection, job: Job) -> Job:
    """The job with its options and its sealed secrets."""
    query = "SELECT options, secrets_sealed FROM scrape_jobs WHERE id = ?"
    row = con.execute(query, [job.id]).fetchone()
    return job if row is None else replace(job, options=str(row[0]), secrets_sealed=row[1])


def progress_of(con: Connection, job: Job) -> Progress:
    """How far a job is. Addresses beyond the job's limit of pages do not count as pending."""
    row = con.execute(
        "SELECT count(*) FILTER (WHERE status = 'completed'), count(*) FILTER (WHERE status = 'failed') "
        "FROM scrape_pages WHERE job_id = ?",
        [job.id],
    ).fetchone()
    completed, failed = row or (0, 0)
    if not job.is_active:
        return Progress(completed, failed, 0)
    query = "SELECT count(*) FROM scrape_frontier WHERE job_id = ? AND status = 'pending'"
    pending = read_number(con, query, [job.id])
    return Progress(completed, failed, min(pending, job.pages_max - completed - failed))


@dataclass(frozen=True, slots=True)
class PageSelection:
    """Which of a job's pages are read, by which number, and how many bytes of documents at a time."""

    status: str | None = None
    order: Literal["number", "place"] = "number"
    max_bytes: int = PAGES_MAX_BYTES


ANY_PAGE: Final = PageSelection()


def list_pages(
    con: Connection,
    job_id: str,
    after: int,
    limit: int,
    selection: PageSelection = ANY_PAGE,
) -> list[Page]:
    """Pages whose number (or place, which counts from 0) is above `after`, in order: as many as are asked
    for and not more than so many bytes of documents, but one at least.
    """
    status, order = selection.status, selection.order
    last = con.execute(
        "SELECT max(position) FROM (SELECT position, row_number() OVER so_far AS nth, "
        f"sum(size_bytes) OVER so_far AS bytes FROM (SELECT {order} AS position, size_bytes FROM scrape_pages "
        f"WHERE job_id = ? AND {order} > ? AND (?::VARCHAR IS NULL OR status = ?) "
        f"ORDER BY {order} LIMIT ?) AS chosen WINDOW so_far AS (ORDER BY position ROWS UNBOUNDED PRECEDING)) AS summed "
        "WHERE nth = 1 OR bytes <= ?",
        [job_id, after, status, status, limit, selection.max_bytes],
    ).fetchone()
    if last is None or last[0] is None:
        return []
    rest = (
        f"WHERE job_id = ? AND {order} > ? AND {order} <= ? "
        f"AND (?::VARCHAR IS NULL OR status = ?) ORDER BY {order}"
    )
    return _PAGES.select(con, rest, job_id, after, last[0], status, status)


def last_number(con: Connection, job_id: str, status: str | None = None) -> int:
    """The highest number of the job's pages, or of those with a status; 0 where there is none."""
    query = (
        "SELECT coalesce(max(number), 0) FROM scrape_pages "
        "WHERE job_id = ? AND (?::VARCHAR IS NULL OR status = ?)"
    )
    return read_number(con, query, [job_id, status, status])


def list_failures(con: Connection, job_id: str, limit: int) -> list[Page]:
    """The pages that failed, in order."""
    failed = "WHERE job_id = ? AND status = 'failed' ORDER BY number LIMIT ?"
    return _PAGES.select(con, failed, job_id, limit)


def frontier_of(con: Connection, job_id: str) -> list[tuple[FrontierEntry, bool]]:
    """Every address that the job knows, and whether it is still to be read."""
    rows = con.execute(
        "SELECT place, depth, url, status = 'pending' FROM scrape_frontier WHERE job_id = ? "
        "ORDER BY place",
        [job_id],
    ).fetchall()
    return [(FrontierEntry(place, depth, url), pending) for place, depth, url, pending in rows]


def list_read_urls(con: Connection, job_id: str) -> list[tuple[int, int, str]]:
    """Number, place and final address of every page of the job."""
    return con.execute(
        "SELECT number, place, url FROM scrape_pages WHERE job_id = ? ORDER BY number", [job_id]
    ).fetchall()


def begin_job(con: Connection, job_id: str) -> None:
    """Marks a waiting job as in progress."""
    con.execute(
        "UPDATE scrape_jobs SET status = 'processing' WHERE id = ? AND status = 'pending'", [job_id]
    )


def finish_entry(
    con: Connection, job_id: str, place: int, page: Page | None, found: list[FrontierEntry]
) -> EntryOutcome:
    """Marks an address as done and stores its page, if it has one, and the addresses found on it. Nothing is
    stored when the job has `ended`, or the address did not wait (`known`): a write that timed out may have
    succeeded.
    """
    if status_of(con, job_id) not in ACTIVE:
        return "ended"
    row = con.execute(
        "UPDATE scrape_frontier SET status = 'done' "
        "WHERE job_id = ? AND place = ? AND status = 'pending' RETURNING 1",
        [job_id, place],
    ).fetchone()
    if row is None:
        return "known"
    if page is not None:
        _insert_page(con, job_id, page)
    insert_entries(con, job_id, found)
    return "stored"


def store_step(con: Connection, job_id: str, page: Page) -> EntryOutcome:
    """Stores an agent's step as a page row, unless the job has ended or has it already."""
    if status_of(con, job_id) not in ACTIVE:
        return "ended"
    known = con.execute(
        "SELECT 1 FROM scrape_pages WHERE job_id = ? AND number = ?", [job_id, page.number]
    ).fetchone()
    if known is not None:
        return "known"
    _insert_page(con, job_id, page)
    return "stored"


def _insert_page(con: Connection, job_id: str, page: Page) -> None:
    marks = ", ".join("?" * len(_PAGES.columns))
    con.execute(
        f"INSERT INTO scrape_pages (job_id, {', '.join(_PAGES.columns)}, size_bytes) "
        f"VALUES (?, {marks}, strlen(coalesce(?, '')))",
        [job_id, *astuple(page), page.document],
    )


def end_job(con: Connection, job_id: str, end: JobEnd) -> bool:
    """Gives a job its last status and deletes its frontier and its secrets; False when it has one already."""
    row = con.execute(
        f"UPDATE scrape_jobs SET status = ?, error = ?, ended_at_ms = ?, expires_at_ms = ?, "
        "secrets_sealed = NULL "
        f"WHERE id = ? AND {_ACTIVE} RETURNING 1",
        [end.status, end.error, end.at_ms, end.expires_at_ms, job_id],
    ).fetchone()
    if row is None:
        return False
    con.execute("DELETE FROM scrape_frontier WHERE job_id = ?", [job_id])
    return True


def forget_ended(con: Connection, kind: Kind, owner: str, before_ms: int) -> int:
    """Expires the owner's jobs of a kind that ended before `before_ms`; their number. The sweep removes them."""
    rows = con.execute(
        "UPDATE scrape_jobs SET expires_at_ms = 0 WHERE kind = ? AND owner = ? AND ended_at_ms < ? "
        "AND expires_at_ms > 0 RETURNING 1",
        [kind, owner, before_ms],
    ).fetchall()
    return len(rows)


def forget_orphans(con: Connection) -> None:
    """Deletes or expires what belongs to deleted keys: nobody can ask for it any more."""
    gone = "owner NOT IN (SELECT id FROM keys)"
    for table in ("scrape_endpoints", "scrape_cache", "scrape_maps", "scrape_css_schemas"):
        con.execute(f"DELETE FROM {table} WHERE {gone}")
    con.execute(f"UPDATE scrape_jobs SET expires_at_ms = 0 WHERE {gone} AND expires_at_ms > 0")


def sweep_jobs(con: Connection, at_ms: int) -> None:
    """Drops jobs that have expired, with their pages."""
    rows = con.execute(
        "DELETE FROM scrape_jobs WHERE expires_at_ms IS NOT NULL AND expires_at_ms <= ? RETURNING id",
        [at_ms],
    ).fetchall()
    gone = [row[0] for row in rows]
    if gone:
        con.execute("DELETE FROM scrape_pages WHERE list_contains(?::VARCHAR[], job_id)", [gone])
        con.execute("DELETE FROM scrape_frontier WHERE list_contains(?::VARCHAR[], job_id)", [gone])
