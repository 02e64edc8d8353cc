"""Every form of every page, sent as a browser sends it: filled wrong it says so by the field, keeps what was typed
and changes nothing; filled right it does what it says.

The forms are read from the pages, so one that is added is sent wrong at once, and fails here by name until this file
says how it is filled right.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest

from fairlead.dashboard.page import Action
from fairlead.dashboard.registry import all_pages
from tests.integration.test_console_pages import addresses, page_at
from tests.support.console_fillings import ELSEWHERE, FILLINGS, LAST, STANDIN
from tests.support.console_forms import ConsolePage, Control, PageForm
from tests.support.owner import OWNER_PASSWORD
from tests.support.polling import eventually
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
            ("Gone", "gone", f"{standin_url}/gone/v1"),
        ):
            node = {"type": "openai-compatible", "name": name, "prefix": prefix, "baseUrl": url}
            made = expect(running.admin.post("/api/provider-nodes", json=node), 201)
            line = {"provider": made["node"]["id"], "name": f"to {prefix}", "authType": "none"}
            expect(running.admin.post("/api/providers", json=line), 201)
        yield running


@pytest.fixture(scope="module")
def owner(gateway: Gateway) -> httpx.Client:
    """The session of the owner, beside two others of theirs and another account."""
    client = gateway.client()
    for each in (gateway.client(), gateway.client(), client):
        expect(each.post("/api/auth/login", json={"password": OWNER_PASSWORD}), 200)
    client.headers["origin"] = gateway.url
    expect(client.post("/api/keys", json={"name": "first"}), 201)
    second = {"email": "second@example.org", "name": "Second", "password": OWNER_PASSWORD}
    body = {**second, "role": "member", "currentPassword": OWNER_PASSWORD}
    expect(client.post("/api/users", json=body), 201)
    return client


def ask(gateway: Gateway, model: str, words: str) -> int:
    """The status of a call whose answer is kept."""
    body = {"model": model, "temperature": 0, "messages": [{"role": "user", "content": words}]}
    return gateway.caller.post("/v1/chat/completions", json=body).status_code


@pytest.fixture(scope="module")
def paths(gateway: Gateway, owner: httpx.Client) -> list[str]:
    """An address of every page, with answers that are kept and a backup."""
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
    for words in ("Ahoy", "Once more", "And again"):
        assert ask(gateway, "demo/echo", words) == ask(gateway, "demo/standin", words) == 200
    expect(owner.put("/api/db-backups"), 200)
    model = expect(owner.get("/api/cache/entries"), 200)["entries"][0]["model"]
    return [*found, f"/dashboard/cache?{urlencode({'model': model})}"]


@pytest.fixture
def rests(gateway: Gateway, owner: httpx.Client) -> None:
    """Models that rest since their provider has them not, and a connection since its provider is away."""
    for model in ("gone/one", "gone/two", "gone/three"):
        assert ask(gateway, model, "Ahoy") == 404
    for _ in range(5):
        assert ask(gateway, "away/one", "Ahoy") in (502, 503)

    def are_shown() -> bool:
        shown = owner.get("/dashboard/health").text
        return 'value="wake_all"' in shown and 'value="reset"' in shown

    eventually(are_shown, "the rests are on the page", within_s=15, every_s=0.2)


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
    wrong = {
        each.name: page.errors.get(each.error_id) for each in form.controls if each.is_marked()
    }
    if not wrong.get(control.name):
        return f"no error by it, but {wrong} {page.alerts}"
    return ""


def newest_change(owner: httpx.Client) -> object:
    """The newest entry of the audit log of what was done, without what pages read."""
    entries = expect(owner.get("/api/audit", params={"outcome": "done", "limit": 20}), 200)[
        "entries"
    ]
    return next(
        each
        for each in entries
        if each["method"] != "GET"
        and each["route"] != "/api/combos/simulate"
        and not (each["sent"] or {}).get("elsewhere")
    )


@pytest.mark.parametrize("is_whole", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_form_that_is_filled_wrong_says_so_by_the_field_and_keeps_the_rest(
    owner: httpx.Client, paths: list[str], standin_url: str, is_whole: bool
) -> None:
    """The short form sends one wrong value of each form, every time of another field."""
    faults, sent = [], 0
    before = newest_change(owner)
    for path in paths:
        for place in places(owner, path) if page_at(path).actions else ():
            wrong = [
                (each, *value) for each in place.form.controls for value in each.wrong_values()
            ]
            for control, kind, value in (
                wrong if is_whole else wrong[sent % len(wrong) :][:1] if wrong else ()
            ):
                sent += 1
                fields = place.filled(standin_url) | {control.name: value}
                answer = send(owner, place, fields)
                if fault := fault_of(place, control, fields, answer):
                    faults.append(f"{place.name} {control.name}, {kind}: {fault}")
            if (after := newest_change(owner)) != before:
                faults.append(f"{place.name} changed something: {after}")
                before = after
    assert not faults, "\n" + "\n".join(faults)
    assert sent > 40, "every form is among them"


def phase(place: tuple[str, str], action: Action) -> int:
    """When a form is sent: what destroys something goes after what needs it."""
    late = {
        # The delivery of the page of one goes first, the other sessions before the password.
        ("webhooks/{webhook_id}", "redeliver"): 1,
        ("webhooks/{webhook_id}", "replay"): 1,
        ("health", "wake_all"): 0,
        ("cache", "forget_chosen"): 1,
        ("account/password", "change"): 4,
        # Control starts anew after it.
        ("backups", "restore"): 5,
    }
    return late.get(place, 2 if action.ask is not None else 0)


def refusal_of(owner: httpx.Client, place: Place, answer: httpx.Response) -> str:
    """What is wrong with the answer to a form that was filled right; empty for nothing."""
    if answer.status_code == 303:
        target = answer.headers["location"]
        answer = owner.get(target)
        if place.action.done not in html.unescape(answer.text):
            return f"{target} does not say {place.action.done!r}"
    page = ConsolePage(answer.text)
    if answer.status_code not in (200, 201) or page.alerts or page.errors:
        return (
            f"{answer.status_code} {page.headings} {page.alerts} {page.errors} {answer.text[:300]}"
        )
    return ""


@pytest.mark.usefixtures("rests")
def test_a_form_that_is_filled_right_does_what_it_says(
    owner: httpx.Client, paths: list[str], standin_url: str
) -> None:
    faults = []
    left = {
        (page.path, act): action for page in all_pages() for act, action in page.actions.items()
    }
    for name in ELSEWHERE:
        del left[name]
    # What destroys something may be sent twice: some of it is in use until other things are gone.
    for now in range(6):
        # What rests does so for a while only.
        for path in sorted(paths, key=lambda each: each != "/dashboard/health"):
            page = page_at(path).path
            for name in [
                each for each in left if each[0] == page and phase(each, left[each]) <= now
            ]:
                # Read again each time: what was sent before may have changed the record.
                place = next((each for each in places(owner, path) if each.name == name), None)
                if place is None:
                    continue
                answer = send(owner, place, place.filled(standin_url))
                if answer.status_code == 409 and now < 4:
                    continue
                del left[name]
                if fault := refusal_of(owner, place, answer):
                    faults.append(f"{name}: {fault}")
    assert not faults, "\n" + "\n".join(faults)
    assert not left, f"no page showed these forms, or they were refused: {list(left)}"


def test_what_is_sent_elsewhere_is_sent_there() -> None:
    tests = Path(__file__).parents[1]
    written = "".join(each.read_text(encoding="utf-8") for each in tests.rglob("test_*.py"))
    missing = {name for name in ELSEWHERE.values() if f"def {name}(" not in written}
    assert not missing
