"""Every form of every page, sent as a browser sends it: filled wrong it says so by the field, keeps what was typed
and changes nothing; filled right it does what it says.

The forms are read from the pages, so one that is added is sent wrong at once, and fails here by name until this file
says how it is filled right.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from fairlead.dashboard.page import Action, Page
from fairlead.dashboard.registry import all_pages, find_page
from tests.integration.test_console_pages import addresses
from tests.support.console_fillings import ELSEWHERE, FILLINGS, LAST, STANDIN
from tests.support.console_forms import ConsolePage, Control, PageForm
from tests.support.owner import OWNER_PASSWORD
from tests.support.processes import Gateway, expect, start_gateway
from tests.support.site import READS_LOOPBACK

THEME = "/dashboard/theme"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, standin_url: str) -> Iterator[Gateway]:
    """One whose every record may be changed and deleted, with the stand-in behind it."""
    folder = tmp_path_factory.mktemp("forms")
    home = folder / "home"
    home.mkdir()
    own = {
        "INITIAL_PASSWORD": OWNER_PASSWORD,
        "CLI_CONFIG_HOME": str(home),
        "GATEWAY_ALLOW_CONTAINER_CONFIG_WRITE": "true",
        **READS_LOOPBACK,
    }
    with start_gateway(folder, **own) as running:
        for name, prefix, url in (
            ("Stand-in", "demo", f"{standin_url}/v1"),
            ("Away", "away", "http://127.0.0.1:9/v1"),
        ):
            node = {"type": "openai-compatible", "name": name, "prefix": prefix, "baseUrl": url}
            made = expect(running.admin.post("/api/provider-nodes", json=node), 201)
            line = {"provider": made["node"]["id"], "name": f"to {prefix}", "authType": "none"}
            expect(running.admin.post("/api/providers", json=line), 201)
        yield running


@pytest.fixture(scope="module")
def owner(gateway: Gateway) -> httpx.Client:
    """The session of the owner, beside another one of theirs and another account."""
    client = gateway.client()
    for each in (gateway.client(), client):
        expect(each.post("/api/auth/login", json={"password": OWNER_PASSWORD}), 200)
    client.headers["origin"] = gateway.url
    expect(client.post("/api/keys", json={"name": "first"}), 201)
    second = {"email": "second@example.org", "name": "Second", "password": OWNER_PASSWORD}
    body = {**second, "role": "member", "currentPassword": OWNER_PASSWORD}
    expect(client.post("/api/users", json=body), 201)
    return client


def ask(gateway: Gateway, model: str) -> int:
    body = {"model": model, "temperature": 0, "messages": [{"role": "user", "content": "Ahoy"}]}
    return gateway.caller.post("/v1/chat/completions", json=body).status_code


@pytest.fixture(scope="module")
def paths(gateway: Gateway, owner: httpx.Client) -> list[str]:
    """An address of every page, with answers that are kept, models that rest and a provider that is away."""
    found = addresses(owner)
    users = expect(owner.get("/api/users"), 200)["users"]
    second = next(each["id"] for each in users if each["name"] == "Second")
    (batch,) = [each for each in found if "/batches/batch" in each]
    places = {
        "identity/{user_id}": f"/dashboard/identity/{second}",
        # Of the key that has a file.
        "batches": f"/dashboard/batches?{batch.partition('?')[2]}",
        "batches/new": f"/dashboard/batches/new?{batch.partition('?')[2]}",
    }
    found = [places.get(page_at(each).path, each) for each in found]
    for model in ("demo/echo", "away/one", "away/two"):
        print(model, ask(gateway, model), ask(gateway, model), ask(gateway, model))
    print(owner.get("/api/resilience/model-cooldowns").text[:600])
    return [*found, "/dashboard/cache?model=echo"]


def page_at(path: str) -> Page:
    """The page of the registry at an address."""
    found = find_page(path.partition("?")[0].removeprefix("/dashboard").strip("/"))
    assert found is not None, path
    return found[0]


@dataclass(frozen=True)
class Place:
    """A form and where it stands; `page` is the path in the registry, `path` the address."""

    page: str
    path: str
    form: PageForm
    action: Action

    @property
    def name(self) -> tuple[str, str]:
        return self.page, self.form.act

    def filled(self, standin_url: str) -> dict[str, str]:
        """What is sent of the form where it is filled right."""
        typed = dict(FILLINGS.get(self.name, {}))
        if self.form.controls:
            assert self.name in FILLINGS, f"say how the form {self.name} is filled right"
        for control in self.form.controls:
            if typed.get(control.name) == LAST:
                typed[control.name] = control.options[-1]
        names = {each.name for each in self.form.controls}
        assert names >= typed.keys(), (self.name, names, typed)
        typed = {name: value.replace(STANDIN, f"{standin_url}/v1") for name, value in typed.items()}
        return {**self.form.fields(), **typed}


def places(owner: httpx.Client, path: str) -> list[Place]:
    """The forms of a page, each act once."""
    page = page_at(path)
    answer = owner.get(path)
    if not answer.headers["content-type"].startswith("text/html"):
        return []
    forms = {
        form.act: Place(page.path, path, form, page.actions[form.act])
        for form in ConsolePage(answer.text).forms
        if form.action.startswith("/dashboard") and form.action != THEME and form.is_usable
    }
    return [each for each in forms.values() if each.name not in ELSEWHERE]


def send(owner: httpx.Client, place: Place, fields: dict[str, str]) -> httpx.Response:
    """Posts the form, and says yes where it is asked."""
    answer = owner.post(place.form.action, data=fields)
    if answer.status_code == 200 and place.action.ask is not None:
        (asked,) = [each for each in ConsolePage(answer.text).forms if "confirmed" in each.hidden]
        answer = owner.post(asked.action, data=asked.fields())
    return answer


def fault_of(place: Place, control: Control, sent: dict[str, str], answer: httpx.Response) -> str:
    """What is wrong with how a wrong value was answered; empty for nothing."""
    if not 400 <= answer.status_code < 500:
        return f"answered {answer.status_code}"
    page = ConsolePage(answer.text)
    form = page.form(place.form.act)
    if form is None:
        return f"the form is gone: {page.headings}"
    for each in form.controls:
        typed, shown = sent.get(each.name), each.text
        if each.is_kept and typed != shown:
            return f"{each.name} was {typed!r:.60} and is {shown!r:.60}"
    wrong = {each.name: page.errors.get(each.error_id) for each in form.controls if each.is_marked()}
    if not wrong.get(control.name):
        return f"no error by it, but {wrong} {page.alerts}"
    return ""


def newest_change(owner: httpx.Client) -> object:
    """The newest entry of the audit log of what was done, without what pages read."""
    entries = expect(owner.get("/api/audit", params={"outcome": "done", "limit": 20}), 200)["entries"]
    return next(
        each
        for each in entries
        if each["method"] != "GET" and each["route"] != "/api/combos/simulate"
    )


@pytest.mark.parametrize("is_whole", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_form_that_is_filled_wrong_says_so_by_the_field_and_keeps_the_rest(
    owner: httpx.Client, paths: list[str], standin_url: str, is_whole: bool
) -> None:
    faults, sent = [], 0
    before = newest_change(owner)
    for path in paths:
        for place in places(owner, path):
            kinds = set()
            for control in place.form.controls:
                for kind, value in control.wrong_values():
                    if kind in kinds and not is_whole:
                        continue
                    kinds.add(kind)
                    sent += 1
                    fields = place.filled(standin_url) | {control.name: value}
                    answer = send(owner, place, fields)
                    if fault := fault_of(place, control, fields, answer):
                        faults.append(f"{place.name} {control.name}, {kind}: {fault}")
                    if (after := newest_change(owner)) != before:
                        faults.append(f"{place.name} {control.name}, {kind}: it changed {after}")
                        before = after
    assert not faults, "\n" + "\n".join(faults)
    assert sent > 60, sent


def phase(place: Place) -> int:
    """When a form is sent: what destroys something goes after what needs it, and what brings all back goes last."""
    if place.name == ("backups", "restore"):
        return 4
    return 2 if place.action.ask is not None else 0 if place.form.controls else 1


def refusal_of(owner: httpx.Client, place: Place, answer: httpx.Response) -> str:
    """What is wrong with the answer to a form that was filled right; empty for nothing."""
    if answer.status_code == 303:
        target = answer.headers["location"]
        answer = owner.get(target)
        if place.action.done not in html.unescape(answer.text):
            return f"{target} does not say {place.action.done!r}"
    page = ConsolePage(answer.text)
    if answer.status_code not in (200, 201) or page.alerts or page.errors:
        return f"{answer.status_code} {page.headings} {page.alerts} {page.errors}"
    return ""


def test_a_form_that_is_filled_right_does_what_it_says(
    owner: httpx.Client, paths: list[str], standin_url: str
) -> None:
    faults, done = [], set()
    # Twice what destroys something: some of it is in use until other things are gone.
    for now in (0, 1, 2, 2, 4):
        for path in paths:
            for place in places(owner, path):
                if place.name in done or phase(place) != now:
                    continue
                # A page that was read before another form was sent is an old one.
                (fresh,) = [each for each in places(owner, path) if each.name == place.name]
                answer = send(owner, fresh, fresh.filled(standin_url))
                if answer.status_code == 409 and now == 2:
                    continue
                done.add(fresh.name)
                if fault := refusal_of(owner, fresh, answer):
                    faults.append(f"{fresh.name}: {fault}")
    assert not faults, "\n" + "\n".join(faults)
    every = {(page.path, act) for page in all_pages() for act in page.actions}
    assert every - done - ELSEWHERE.keys() == set(), "forms that no page showed"
    assert ELSEWHERE.keys() <= every
