"""The pages: forms that work without a script, say what is wrong, and cannot be framed or fooled."""

from __future__ import annotations

from html.parser import HTMLParser
from urllib.parse import urlencode

import pytest

from tests.support.management import PASSWORD

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

FORM = {"content-type": "application/x-www-form-urlencoded"}


class Page(HTMLParser):
    """What a reader of the page is told of its fields."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.labelled: set[str | None] = set()
        self.fields: dict[str | None, dict[str, str | None]] = {}
        self.ids: list[str | None] = []
        self.tags: list[str] = []
        self.html: dict[str, str | None] = {}
        self.feed(text)

    def handle_starttag(self, tag, attrs) -> None:
        about = dict(attrs)
        self.tags.append(tag)
        if "id" in about:
            self.ids.append(about["id"])
        if tag == "html":
            self.html = about
        if tag == "label":
            self.labelled.add(about.get("for"))
        if tag == "input":
            self.fields[about.get("name")] = about


async def post(control, path: str, **fields: str):
    return await control.client.post(path, content=urlencode(fields), headers=FORM)


async def test_pages_are_shut_to_frames_scripts_and_caches(control) -> None:
    answers = [
        await control.client.get("/login"),
        await post(control, "/login", password="wrong"),
        await post(control, "/login/2fa", token="x", code="1"),
    ]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        for part in ("default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"):
            assert part in policy
        assert "unsafe" not in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        page = Page(answer.text)
        assert "script" not in page.tags
        assert page.html["lang"] == "en"
        assert page.tags.count("h1") == 1
        assert len(page.ids) == len(set(page.ids))
        assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in answer.text


async def test_every_field_has_its_label_and_its_purpose(control) -> None:
    page = Page((await control.client.get("/login")).text)
    shown = {name: one for name, one in page.fields.items() if one.get("type") != "hidden"}
    assert set(shown) == {"email", "password"}
    for field in shown.values():
        assert field["id"] in page.labelled
    assert shown["email"]["autocomplete"] == "username"
    assert shown["password"]["autocomplete"] == "current-password"


async def test_the_owner_signs_in_and_goes_on(control) -> None:
    answer = await post(control, "/login", password=PASSWORD, return_to="/board?x=1")
    assert (answer.status_code, answer.headers["location"]) == (303, "/board?x=1")
    assert "HttpOnly" in answer.headers["set-cookie"]


@pytest.mark.parametrize(
    "return_to",
    [
        "https://evil.example",
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "https:evil.example",
        "javascript:alert(1)",
        "/%2f%2fevil.example/..",
        "/%5cevil.example",
        "/%252fevil",
        "/\t/evil.example",
        "/\n",
        " /",
        "evil",
        "",
        "/" + "a" * 9000,
    ],
)
async def test_nobody_is_led_elsewhere(control, return_to: str) -> None:
    answer = await post(control, "/login", password=PASSWORD, return_to=return_to)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


async def test_what_was_typed_is_shown_inert_and_passwords_not_at_all(control) -> None:
    canary = '"><script>alert(1)</script>'
    answer = await post(control, "/login", email=canary, password="a wrong one")
    assert answer.status_code == 401
    assert "Login failed. Check your email and password." in answer.text
    assert 'role="alert"' in answer.text
    assert "<script" not in answer.text
    assert "a wrong one" not in answer.text


async def test_too_many_attempts_are_told_in_words(control) -> None:
    for _ in range(5):
        await post(control, "/login", password="wrong")
    answer = await post(control, "/login", password=PASSWORD)
    assert answer.status_code == 429
    assert "Too many attempts. Try again shortly." in answer.text


async def test_signing_out_from_the_page(control) -> None:
    answer = await post(control, "/login", password=PASSWORD)
    cookie = answer.headers["set-cookie"].partition(";")[0]
    who = (await control.client.get("/api/auth/me")).json()
    headers = control.as_principal("session", who["id"], ["manage"]) | {"cookie": cookie}
    page = await control.client.get("/login", headers=headers)
    assert "You are signed in" in page.text
    assert "owner@localhost" in page.text
    answer = await control.client.post("/logout", headers=headers)
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    assert control.snapshot()["sessions"] == []


async def test_a_form_is_taken_by_pages_alone(control) -> None:
    body = urlencode({"password": PASSWORD})
    for path in ("/api/auth/login", "/api/auth/password"):
        answer = await control.client.post(path, content=body, headers=FORM)
        assert answer.status_code == 415
