"""One agent from its start to its end: observe the page, ask the model, act, store the step, and again.

Each step is a row as soon as it is done. After a crash the agent continues after the last one, in a new tab at
the same address; form input and logins are lost, and the model is informed.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import orjson

from fairlead.calls.model import Model
from fairlead.errors import InvalidRequest, NotFound, RateLimited
from fairlead.moment import now_ms
from fairlead.net.url import split_url
from fairlead.scrape.address import BadAddress, canonical, check_url
from fairlead.scrape.agent.action import Decision, Finish
from fairlead.scrape.agent.prompt import Observation, Task, decide
from fairlead.scrape.fetch.fetcher import FetchFailed
from fairlead.scrape.jobs.completion import conclude
from fairlead.scrape.jobs.table import (
    Job,
    Page,
    PageSelection,
    begin_job,
    finish_entry,
    list_pages,
    store_step,
)
from fairlead.scrape.requests.browser import SessionAction, SessionRequest
from fairlead.scrape.requests.jobs import AgentRequest
from fairlead.scrape.requests.page import ScrapeOptions
from fairlead.store.file import Connection
from fairlead.store.owner_bytes import DATABASE, claim_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.scrape.browser.sessions import Session
    from fairlead.scrape.browser.survey import Survey
    from fairlead.scrape.scraper import Scraper
    from fairlead.store.services import Services

AGENT_DEADLINE_S: Final = 900.0
SESSION_RETRY_S: Final = 2.0
STEPS_MAX: Final = 20
# The size of the rows of all steps together: reasoning and actions, no pages.
STEPS_MAX_BYTES: Final = 64 * 1024 * 1024
OBSERVATIONS_MAX: Final = 3
_MARKDOWN: Final = ScrapeOptions.model_validate(
    {"extractorFormat": "markdown", "onlyMainContent": False}
)
_RESTARTED: Final = (
    "The browser was restarted: you are at the address of the last step, and what was filled in or logged "
    "in to is gone."
)


class AgentRun:
    """The run of one agent job: `run` lasts until the job has ended."""

    def __init__(
        self, services: Services, scraper: Scraper, job: Job, announce: Callable[[], None]
    ) -> None:
        ask = AgentRequest.model_validate(orjson.loads(job.options))
        self._services = services
        self._scraper = scraper
        self._job = job
        self._announce_change = announce
        self._ask = ask
        self._model = Model(services.config, job.owner, ask.model or "")
        self._hosts: set[str] | None = (
            None if ask.allow_other_sites else {split_url(job.url).netloc}
        )
        self._steps: list[dict[str, Any]] = []
        self._url = job.url
        self._session: Session | None = None
        self._note: str | None = None
        self._tokens = {"input": 0, "output": 0}
        self._schema = scraper.schema(ask.schema_, job.owner) if ask.schema_ is not None else None

    async def run(self) -> None:
        await self._take_up()
        try:
            async with asyncio.timeout(AGENT_DEADLINE_S):
                await self._run_steps()
        except TimeoutError:
            late = f"The time limit of {AGENT_DEADLINE_S:g} seconds is reached."
            await self._end("completed", None, Finish(False, late, None, None))
        except FetchFailed as failure:
            await self._end("failed", failure.reason, Finish(False, failure.reason, None, None))
        finally:
            await self._close_session()

    async def _take_up(self) -> None:
        job_id = self._job.id
        await self._write(lambda con: begin_job(con, job_id))
        for page in await self._services.state.read(
            lambda con: list_pages(
                con, job_id, 0, STEPS_MAX, PageSelection(max_bytes=STEPS_MAX_BYTES)
            )
        ):
            step = orjson.loads(page.document or "{}")
            self._steps.append(step)
            self._count(step["tokens"])
            self._url = page.url
            self._note = _RESTARTED
            if self._hosts is not None:
                # A host that was visited before was allowed then.
                self._hosts.add(split_url(page.url).netloc)

    async def _run_steps(self) -> None:
        """Takes steps until the job has ended, at the latest when none is left."""
        while True:
            survey = await self._observe()
            left = self._ask.max_steps - len(self._steps)
            html = await self._scraper.document_of(
                survey.url, survey.html, _MARKDOWN, self._job.owner
            )
            sight = Observation(survey, html["content"], self._steps, left, self._note)
            decision, tokens = await decide(self._model, self._task(), sight)
            self._count(tokens)
            self._note = None
            end = decision.action
            if not isinstance(end, Finish):
                error = await self._act(end)
                step = self._step(decision, survey, tokens, error)
                await self._write(partial(self._store, step=step))
                self._announce_change()
            elif left == 0:
                used_up = f"The step limit of {self._ask.max_steps} is reached."
                await self._end("completed", None, Finish(False, used_up, end.answer, end.data))
                return
            else:
                step = self._step(decision, survey, tokens, None)
                await self._end("completed", None, end, step)
                return

    def _count(self, tokens: dict[str, int]) -> None:
        for name in self._tokens:
            self._tokens[name] += tokens[name]

    def _task(self) -> Task:
        return Task(
            goal=self._ask.prompt,
            schema=self._schema,
            hosts=frozenset(self._hosts) if self._hosts is not None else None,
        )

    # --- the browser

    async def _observe(self) -> Survey:
        """The page in its current state, in a new tab if there is none, and never a page of another site."""
        failure = FetchFailed("The page always leads to another site.", code="redirects")
        for _ in range(OBSERVATIONS_MAX):
            if self._session is None or not self._session.context.is_alive:
                self._session = await self._open_session()
            try:
                survey = await self._scraper.sessions.survey(self._session)
            except FetchFailed as fault:
                # The page navigated while it was observed, or it hung.
                failure = fault
                continue
            if self._is_allowed(survey.url):
                self._note_address(survey.url)
                return survey
            await self._navigate(self._url)
        raise failure

    async def _open_session(self) -> Session:
        is_first = self._session is None and not self._steps
        if not is_first:
            self._note = _RESTARTED
        session = self._session = await self._create_session()
        if self._hosts is not None and not is_first:
            await self._scraper.sessions.confine(session, self._is_allowed)
        await self._navigate(self._url)
        if self._hosts is not None and is_first:
            # The start may have redirected: the host that it ended at belongs to the site.
            self._note_address(session.page.url)
            self._hosts.add(split_url(self._url).netloc)
            await self._scraper.sessions.confine(session, self._is_allowed)
        return session

    async def _create_session(self) -> Session:
        """A session that belongs to the job's id, so no call of its owner can use it. Waits while all sessions are
        taken.
        """
        while True:
            try:
                return await self._scraper.sessions.create(
                    self._job.id, SessionRequest(), is_of_job=True
                )
            except RateLimited:
                await asyncio.sleep(SESSION_RETRY_S)
            except InvalidRequest as fault:
                # There is no browser here.
                raise FetchFailed(fault.message, code="invalid_request") from None

    async def _navigate(self, url: str) -> None:
        action = SessionAction.model_validate({"type": "navigate", "url": url})
        async with self._scraper.admit(url):
            await self._scraper.sessions.act(self._require_session(), action)
        await self._scraper.sessions.settled(self._require_session())

    async def _act(self, action: SessionAction) -> str | None:
        """Performs the action; the reason of its failure, or None."""
        session = self._require_session()
        session.blocked.clear()
        try:
            if action.type == "navigate":
                await self._navigate(self._target(action.url or ""))
            else:
                await self._scraper.sessions.act(session, action)
                await self._scraper.sessions.settled(session)
            url = str(session.page.url)
            if not self._is_allowed(url):
                await self._navigate(self._url)
                return _away(url)
            self._note_address(url)
            if session.blocked:
                return _away(session.blocked[0])
        except FetchFailed as failure:
            return failure.reason
        except (InvalidRequest, NotFound) as fault:
            return fault.message
        return None

    def _target(self, url: str) -> str:
        try:
            url = canonical(url, base=self._url)
        except BadAddress as fault:
            raise FetchFailed(f"url {fault}.") from None
        url = check_url(url, self._scraper.egress)
        if not self._is_allowed(url):
            raise FetchFailed(_away(url))
        return url

    def _is_allowed(self, url: str) -> bool:
        parts = split_url(url)
        return self._hosts is None or parts.netloc in self._hosts or parts.scheme == "about"

    def _note_address(self, url: str) -> None:
        # An empty page (`about:blank`) is no address to return to.
        if url.startswith(("http://", "https://")):
            self._url = url

    def _require_session(self) -> Session:
        if self._session is None:
            raise FetchFailed("There is no tab.", code="session")
        return self._session

    async def _close_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await self._scraper.sessions.close(session)

    # --- the rows

    def _step(
        self, decision: Decision, survey: Survey, tokens: dict[str, int], error: str | None
    ) -> Page:
        number = len(self._steps) + 1
        step = {
            "step": number,
            "url": survey.url,
            "thought": decision.thought,
            "action": decision.view(),
            **({"error": error} if error else {}),
            "tokens": tokens,
        }
        self._steps.append(step)
        return Page(
            number,
            number,
            self._url,
            "failed" if error else "completed",
            None,
            error,
            None,
            orjson.dumps(step).decode(),
            now_ms(),
        )

    def _store(self, con: Connection, step: Page) -> None:
        claim_bytes(con, DATABASE, self._job.owner, len((step.document or "").encode()))
        store_step(con, self._job.id, step)

    async def _end(
        self, status: str, error: str | None, end: Finish, last: Page | None = None
    ) -> None:
        """Stores the result in place 0, with the last step and the job's end, in one transaction."""
        job, number = self._job, len(self._steps) + 1
        result = {
            "completed": end.completed,
            "reason": end.reason,
            "finalUrl": self._url,
            **({"answer": end.answer} if end.answer is not None else {}),
            **({"data": end.data} if end.data is not None else {}),
            "model": self._ask.model,
            "tokens": self._tokens,
        }
        page = Page(
            number,
            0,
            self._url,
            "completed",
            None,
            None,
            None,
            orjson.dumps(result).decode(),
            now_ms(),
        )

        def insert_result(con: Connection) -> None:
            if last is not None:
                store_step(con, job.id, last)
            if finish_entry(con, job.id, 0, page, []) == "stored":
                conclude(con, job, status, error)

        await self._write(insert_result)
        self._announce_change()

    async def _write(self, write: Callable[[Connection], Any]) -> Any:
        return await self._services.state.record(write, deadline_s=30.0)


def _away(url: str) -> str:
    return f"That leads to another site, {split_url(url).netloc[:200]}, which is not visited."
