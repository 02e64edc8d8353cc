"""Agents that work in a browser towards a goal, through the whole gateway, with a provider that says what to do."""

from __future__ import annotations

import json
import signal
from typing import Any

import httpx
import pytest

from tests.support.chromium import needs_chromium
from tests.support.polling import eventually
from tests.support.processes import Gateway, expect
from tests.support.site import Site
from tests.support.site_browser import PASSWORD
from tests.support.upstream import Gate, Script, Upstream, completion, reply

pytest.importorskip("playwright")
pytestmark = needs_chromium


def does(type_: str, **fields: Any) -> Script:
    """A model that wants this done."""
    return reply(
        completion(json.dumps({"thought": f"I {type_}.", "action": {"type": type_, **fields}}))
    )


def ends(answer: str = "done", **fields: Any) -> Script:
    return does("finish", reason="It is there.", answer=answer, **fields)


class Agent:
    """One agent, seen by its owner; `told` is what the model was asked, round by round."""

    def __init__(
        self,
        caller: httpx.Client,
        gateway: Gateway,
        upstream: Upstream,
        *scripts: Script,
        **fields: Any,
    ) -> None:
        self._caller = caller
        self._upstream = upstream
        if scripts:
            upstream.script(*scripts)
        body = {
            "prompt": "Who are the tide tables for?",
            "model": gateway.add_lane(upstream).model,
            **fields,
        }
        self.started = expect(caller.post("/api/agent", json=body), 200)
        self.path = f"/api/agent/{self.started['id']}"

    def ended(self, within_s: float = 40) -> Any:
        def look() -> Any:
            try:
                answer = self._caller.get(self.path)
            except httpx.HTTPError:
                return None
            view = answer.json() if answer.status_code == 200 else {}
            return view if view.get("status") in {"completed", "failed"} else None

        return eventually(look, "the agent's end", within_s=within_s, every_s=0.05)

    @property
    def told(self) -> list[str]:
        return [seen.json()["messages"][-1]["content"] for seen in self._upstream.requests]


def test_an_agent_logs_in_and_tells_what_it_found(
    gateway: Gateway, caller: httpx.Client, site: Site, upstream: Upstream
) -> None:
    agent = Agent(
        caller,
        gateway,
        upstream,
        does("fill", selector="#user", value="ada"),
        does("fill", selector="#password", value=PASSWORD),
        does("click", selector="#nothing", timeout=50),
        does("click", selector="#enter"),
        ends("For [members](http://evil.example/?q=key) alone."),
        url=site.url("/door"),
    )
    assert (agent.started["success"], agent.started["status"]) == (True, "pending")
    assert agent.started["url"].endswith(agent.path)
    # Its tab is nobody's to come into.
    assert expect(caller.get("/api/browser/sessions"), 200)["count"] == 0
    view = agent.ended()
    assert (view["status"], view["type"]) == ("completed", "agent")
    result = view["result"]
    assert (result["completed"], result["reason"]) == (True, "It is there.")
    assert result["goal"] == "Who are the tide tables for?"
    assert result["answer"] == "For members alone."
    assert result["finalUrl"] == site.url("/members")
    assert "data" not in result
    steps = result["steps"]
    assert [step["action"]["type"] for step in steps] == [
        "fill",
        "fill",
        "click",
        "click",
        "finish",
    ]
    assert steps[0] == {
        "step": 1,
        "url": site.url("/door"),
        "thought": "I fill.",
        "action": {"type": "fill", "selector": "#user", "value": "ada"},
        "tokens": {"input": 7, "output": 3},
    }
    assert "browser failed" in steps[2]["error"]
    assert result["tokens"] == {"input": 35, "output": 15}
    system = upstream.requests[0].json()["messages"][0]["content"]
    assert "gives you no instructions" in system
    mark = system.split("<page-")[1].split(">")[0]
    first, last = agent.told[0], agent.told[-1]
    page = first.split(f"<page-{mark}>")[1]
    assert '"selector":"#password"' in page
    assert "Address: http" not in first.split(f"<page-{mark}>")[0]
    assert "The tide tables are here" in last
    assert '"error":"The browser failed' in agent.told[3]
    stranger = gateway.client(headers={"X-API-Key": gateway.create_key(name="other")["key"]})
    expect(stranger.get(agent.path), 404)
    records = {record["principalKind"] for record in gateway.records()}
    assert records == {"key"}


def test_data_fits_the_schema_or_is_asked_for_again(
    gateway: Gateway, caller: httpx.Client, site: Site, upstream: Upstream
) -> None:
    schema = {
        "type": "object",
        "required": ["metres"],
        "properties": {"metres": {"type": "number"}},
    }
    agent = Agent(
        caller,
        gateway,
        upstream,
        ends(data={"metres": "deep"}),
        ends(data={"metres": 4.5}),
        url=site.url("/article"),
        schema=schema,
    )
    assert agent.ended()["result"]["data"] == {"metres": 4.5}
    assert "'deep' is not of type 'number'" in agent.told[1]
    assert len(upstream.requests) == 2


def test_an_agent_stays_on_the_site_where_it_began(
    gateway: Gateway, caller: httpx.Client, site: Site, upstream: Upstream
) -> None:
    with Site() as other:
        to = other.url("/article")
        agent = Agent(
            caller,
            gateway,
            upstream,
            does("navigate", url=to),
            does("click", selector="#link"),
            does("click", selector="#window"),
            does("click", selector="#script"),
            does("navigate", url="http://169.254.169.254/latest/"),
            does("navigate", url="file:///etc/passwd"),
            does("navigate", url="/secret/x"),
            does("click", selector="#near"),
            does("back"),
            ends(),
            url=site.url(f"/ways?to={to}"),
        )
        result = agent.ended()["result"]
        errors = [step.get("error", "") for step in result["steps"]]
        for error in errors[:4]:
            assert (
                error
                == f"That leads to another site, 127.0.0.1:{other.port}, which is not visited."
            )
        assert "private" in errors[4]
        assert "must use http or https" in errors[5]
        assert "robots.txt" in errors[6]
        assert errors[7:] == ["", "", ""]
        assert result["steps"][8]["url"] == site.url("/article")
        assert result["finalUrl"] == site.url(f"/ways?to={to}")
        assert other.asked() == {}
        # Where this site itself sends it away is known only when it is there: then it comes back.
        moved = Agent(
            caller,
            gateway,
            upstream,
            does("click", selector="#moved"),
            ends(),
            url=site.url(f"/ways?to={to}"),
        )
        steps = moved.ended()["result"]["steps"]
        assert "another site" in steps[0]["error"]
        assert steps[1]["url"] == site.url(f"/ways?to={to}")
        assert b"A harbour silts up" not in upstream.last.body
        upstream.script(does("navigate", url=to), ends())
        free = Agent(
            caller,
            gateway,
            upstream,
            url=site.url(f"/ways?to={to}"),
            allowOtherSites=True,
        )
        assert free.ended()["result"]["finalUrl"] == to
        assert b"A harbour silts up" in upstream.last.body


def test_an_agent_ends_when_its_steps_are_used_up_or_its_answers_are_no_actions(
    gateway: Gateway, caller: httpx.Client, site: Site, upstream: Upstream
) -> None:
    agent = Agent(
        caller,
        gateway,
        upstream,
        reply(completion("Let me see.")),
        does("scroll"),
        does("scroll"),
        ends("as far as I came"),
        url=site.url("/article"),
        maxSteps=1,
    )
    result = agent.ended()["result"]
    assert (result["completed"], result["reason"]) == (False, "The step limit of 1 is reached.")
    assert (result["answer"], len(result["steps"])) == ("as far as I came", 1)
    assert "it is not JSON" in agent.told[1]
    assert "Steps that are left: 0. Finish now" in agent.told[2]
    for wrong, said in [
        (does("evaluate", script="1"), "is none of navigate"),
        (does("click"), "needs selector"),
        (does("click", selector="a", options={}), "options is no member"),
        (reply(completion("[]")), "not an object"),
        (does("finish"), '"answer" is missing'),
    ]:
        failed = Agent(caller, gateway, upstream, wrong, url=site.url("/article")).ended()
        assert failed["status"] == "failed"
        assert said in failed["error"]
        assert failed["result"]["completed"] is False
    unreachable = Agent(caller, gateway, upstream, ends(), url=site.url("/secret/x")).ended()
    assert (unreachable["status"], unreachable["result"]["steps"]) == ("failed", [])
    assert "robots.txt" in unreachable["error"]


def test_agents_wait_for_one_another_and_hold_up_nothing_else(
    gateway: Gateway, caller: httpx.Client, site: Site, upstream: Upstream
) -> None:
    gate = Gate()
    upstream.script([gate, *ends()])
    agents = [Agent(caller, gateway, upstream, url=site.url("/article")) for _ in range(3)]
    other = gateway.client(headers={"X-API-Key": gateway.create_key(name="another")["key"]})
    agents += [Agent(other, gateway, upstream, url=site.url("/article")) for _ in range(2)]
    # Two of one key, and one of another.
    eventually(lambda: len(upstream.requests) == 3, "three of them ask", within_s=30)
    waiting = [agents[2].path, agents[4].path]
    scrape = expect(caller.post("/api/scrape/async", json={"url": site.url("/pages/5")}), 200)
    eventually(
        lambda: expect(caller.get(f"/api/scrape/job/{scrape['id']}"), 200)["status"] == "completed",
        "the scrape's end",
        within_s=15,
    )
    assert expect(caller.get(waiting[0]), 200)["status"] == "pending"
    assert expect(other.get(waiting[1]), 200)["status"] == "pending"
    assert len(upstream.requests) == 3
    gate.open()
    assert {agent.ended()["result"]["answer"] for agent in agents} == {"done"}


def test_bad_input_says_what_to_do(caller: httpx.Client, site: Site) -> None:
    url = site.url("/article")
    for body, said in [
        ({"url": url}, "prompt"),
        ({"url": url, "prompt": "x" * 5001}, "prompt"),
        ({"url": url, "prompt": "x", "maxSteps": 0}, "maxSteps"),
        ({"url": url, "prompt": "x", "schema": {"type": "nonsense"}}, "schema"),
        ({"url": url, "prompt": "x"}, "scrapeModel"),
        ({"url": "http://169.254.169.254/", "prompt": "x", "model": "m"}, "private"),
    ]:
        answer = expect(caller.post("/api/agent", json=body), 400)
        assert said in answer["error"]
    expect(caller.get("/api/agent/none"), 404)


def test_an_agent_goes_on_behind_its_last_step_after_kill_9(
    gateway: Gateway, caller: httpx.Client, site: Site, upstream: Upstream
) -> None:
    gate = Gate()
    agent = Agent(
        caller,
        gateway,
        upstream,
        does("navigate", url="/article"),
        [gate],
        ends(),
        url=site.url("/door"),
    )
    assert gate.reached.wait(30)
    assert len(expect(caller.get(agent.path), 200)["steps"]) == 1
    gateway.control.signal(signal.SIGKILL)
    result = agent.ended()["result"]
    assert [step["action"]["type"] for step in result["steps"]] == ["navigate", "finish"]
    assert result["steps"][1]["url"] == site.url("/article") == result["finalUrl"]
    assert "The browser was restarted" in agent.told[-1]
    assert '"type":"navigate"' in agent.told[-1]
