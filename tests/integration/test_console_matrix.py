"""Every page, part and form of the console by who asks and from where, over a whole gateway: the pages come from
the registry, so one that is added is covered, or fails here by name.

What strangers wrote is on many pages; Chromium draws each of them with such text, at the width of a phone.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, urlencode

import httpx
import orjson
import pytest

from fairlead.dashboard.page import Page
from fairlead.dashboard.registry import all_pages
from fairlead.serve.demo_traffic import NOBODY, demo_records
from tests.integration.test_console_pages import NARROW, QUERIES
from tests.support.browser_tab import Tab
from tests.support.chromium import needs_chromium
from tests.support.owner import OWNER_PASSWORD
from tests.support.polling import eventually
from tests.support.processes import Gateway, expect

MARKUP: Final = '"><script>alert(1)</script><img src=x onerror=alert(2)><svg/onload=alert(3)>'
BIDI: Final = "\u202egnp.exe\u2066\u2067 \u200f"
LINE: Final = "w" * 1_000_000
HOSTILE: Final = f"{MARKUP} {BIDI} {'w' * 90}"
# Pages for every person, not only for who manages.
OF_EVERYBODY: Final = {"my-keys", "account", "account/password", "account/second-factor"}
# From where a form must not come; the relay knows by these headers.
ELSEWHERE: Final[dict[str, dict[str, str]]] = {
    "another origin": {"origin": "https://evil.example"},
    "an origin that is hidden": {"origin": "null"},
    "a page of another site": {"sec-fetch-site": "cross-site"},
    "a page of a sister site": {"sec-fetch-site": "same-site"},
    "nowhere": {},
}


@pytest.fixture(scope="module")
def gateway(owned_gateway: Gateway) -> Gateway:
    return owned_gateway


@pytest.fixture(scope="module")
def owner(gateway: Gateway) -> httpx.Client:
    client = gateway.client()
    expect(client.post("/api/auth/login", json={"password": OWNER_PASSWORD}), 200)
    client.headers["origin"] = gateway.url
    return client


@pytest.fixture(scope="module")
def member(gateway: Gateway, owner: httpx.Client) -> httpx.Client:
    """The session of somebody who does not manage the gateway."""
    who = {"email": "member@example.org", "password": OWNER_PASSWORD}
    body = {**who, "name": MARKUP, "role": "member", "currentPassword": OWNER_PASSWORD}
    expect(owner.post("/api/users", json=body), 201)
    client = gateway.client()
    expect(client.post("/api/auth/login", json=who), 200)
    client.headers["origin"] = gateway.url
    return client


def requests(gateway: Gateway, owner: httpx.Client) -> str:
    """Settled requests with texts of strangers; the id of one."""
    records = list(demo_records(NOBODY, datetime.now(UTC)))[-30:]
    for record in records:
        record.update(
            model=HOSTILE,
            upstream_model=HOSTILE,
            provider=HOSTILE,
            combo=HOSTILE,
            session_tag=HOSTILE[:250],
            session_id=HOSTILE[:250],
            guardrails=f"{MARKUP.replace(',', '')};found=email;action=warn",
        )
    lines = b"\n".join(orjson.dumps(record) for record in records) + b"\n"
    spool = gateway.data_dir / "spool"
    (spool / "strange-1.part").write_bytes(lines)
    (spool / "strange-1.part").rename(spool / "strange-1.ndjson")

    def are_there() -> bool:
        logs = expect(owner.get("/api/usage/logs", params={"limit": 1}), 200)
        return bool(logs["total"] >= len(records))

    eventually(are_there, "the requests in the log", within_s=30, every_s=0.1)
    return str(records[0]["request_id"])


def made(owner: httpx.Client, path: str, **body: Any) -> Any:
    return expect(owner.post(path, json=body), 201)


def of_key(owner: httpx.Client) -> dict[str, str]:
    """A batch, its file and a crawl of a key, all named by strangers."""
    key = made(owner, "/api/keys", name=HOSTILE[:200])
    headers = {"authorization": f"Bearer {key['key']}"}
    base = str(owner.base_url)
    # One line of a megabyte, with markup before it.
    line = orjson.dumps({"custom_id": MARKUP[:60], "method": "POST", "url": "/v1/chat/completions"})
    content = line[:-1] + b', "body": ' + orjson.dumps({"model": "a/b", "x": LINE}) + b"}\n"
    sent = {"file": ("<img src=x onerror=alert(4)>.jsonl", content)}
    file = expect(
        httpx.post(f"{base}/v1/files", headers=headers, data={"purpose": "batch"}, files=sent), 200
    )
    ask = {
        "input_file_id": file["id"],
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
        "metadata": {MARKUP[:60]: MARKUP},
    }
    batch = expect(httpx.post(f"{base}/v1/batches", headers=headers, json=ask), 200)
    site = {"url": f"https://93.184.215.14/{quote(MARKUP)}/{'w' * 900}"}
    crawl = expect(httpx.post(f"{base}/api/crawl", headers=headers, json=site, timeout=30), 200)
    chosen = f"?key={key['id']}"
    return {
        "{key_id}": key["id"],
        "{batch_id}": f"{batch['id']}{chosen}",
        "{file_id}": f"{file['id']}{chosen}",
        "{job_id}": f"{crawl['id']}{chosen}",
    }


@pytest.fixture(scope="module")
def addresses(gateway: Gateway, owner: httpx.Client) -> dict[str, str]:
    """An address of every page, by its path in the registry; what they show was written by strangers."""
    node = {"type": "openai-compatible", "name": HOSTILE[:200], "prefix": "n"}
    node = made(owner, "/api/provider-nodes", **node, baseUrl="http://127.0.0.1:9/v1")["node"]
    connection = {"provider": node["id"], "name": HOSTILE[:200], "apiKey": "sk-very-secret-1234"}
    name = MARKUP + " " + "w" * 100
    hook = made(owner, "/api/webhooks", name=name, url="https://93.184.215.14/x", events=["*"])
    hook_id = hook["webhook"]["id"]
    tested = expect(owner.post(f"/api/webhooks/{hook_id}/test", json={}), 200)
    combo = made(owner, "/api/combos", name="ours", description=HOSTILE, models=["n/one"])
    mapping = {"pattern": "n/t*", "comboId": combo["id"], "description": HOSTILE}
    pipeline = {"name": "ours", "description": HOSTILE, "stages": [{"engine": "lite"}]}
    agent = {"name": MARKUP, "description": HOSTILE, "prompt": LINE[:9_000] + MARKUP}
    ids = {
        **of_key(owner),
        "{connection_id}": made(owner, "/api/providers", **connection)["connection"]["id"],
        "{webhook_id}": hook_id,
        "{delivery_id}": tested["deliveryId"],
        "{combo_id}": combo["id"],
        "{mapping_id}": made(owner, "/api/model-combo-mappings", **mapping)["id"],
        "{pipeline_id}": made(owner, "/api/context/combos", **pipeline)["id"],
        "{group_id}": made(owner, "/api/groups", name=MARKUP)["id"],
        "{skill_id}": made(owner, "/api/agent-skills", **agent)["id"],
        "{user_id}": expect(owner.get("/api/users"), 200)["users"][0]["id"],
        "{request_id}": requests(gateway, owner),
        "{provider}": "openai",
        "{node_id}": node["id"],
        "mitm/{tool_id}": "mitm/kiro",
        "cli-agents/{tool_id}": "cli-agents/goose",
        "{tool_id}": "codex",
    }
    found = {}
    for page in all_pages():
        path = page.address
        for name, value in ids.items():
            path = path.replace(name, value)
        assert "{" not in path, f"the tests know no address of {page.path}"
        # A choice of a key stands at the end.
        place, _, query = path.partition("?")
        first, _, rest = query.partition("/")
        path = f"{place}{'/' + rest if rest else ''}{'?' + first if first else ''}"
        found[page.path] = path + QUERIES.get(page.path, "")
    return found


def forms() -> list[tuple[Page, str]]:
    found = [(page, name) for page in all_pages() for name in page.actions]
    assert len(found) > 40
    return found


def state(owner: httpx.Client) -> list[int]:
    """What forms could have made or deleted."""
    paths = ("keys", "webhooks", "combos", "groups", "agent-skills", "users", "providers")
    return [
        len(expect(owner.get(f"/api/{path}", params={"limit": 100}), 200)[_member(path)])
        for path in paths
    ]


def _member(path: str) -> str:
    return {"agent-skills": "skills", "providers": "connections"}.get(path, path)


@pytest.mark.parametrize("where", ELSEWHERE)
def test_no_form_is_taken_from_elsewhere(
    gateway: Gateway, owner: httpx.Client, addresses: dict[str, str], where: str
) -> None:
    before = state(owner)
    cookies = {"auth_token": owner.cookies["auth_token"]}
    with gateway.client(cookies=cookies, headers=ELSEWHERE[where]) as foreign:
        for page, name in forms():
            fields = {"act": name, "confirmed": "yes", "name": "x", "q": "x"}
            answer = foreign.post(addresses[page.path], data=fields)
            assert answer.status_code == 403, (page.path, name, answer.text[:200])
            assert "Origin" in answer.text
        assert foreign.post("/dashboard/theme", data={"theme": "dark"}).status_code == 403
    assert state(owner) == before


def test_who_does_not_manage_sees_no_control_and_can_call_none(
    owner: httpx.Client, member: httpx.Client, addresses: dict[str, str]
) -> None:
    before = state(owner)
    assert {page.path for page in all_pages() if page.right == "person"} == OF_EVERYBODY
    for page in all_pages():
        path = addresses[page.path]
        beside = "&" if "?" in path else "?"
        answer = member.get(path)
        part = member.get(f"{path}{beside}part=request")
        live = member.get(f"/dashboard/live?{urlencode({'at': path})}")
        if page.path in OF_EVERYBODY:
            assert answer.status_code == 200, path
            hrefs = set(re.findall(r'href="(/dashboard[^"#?]*)', answer.text))
            assert {href for href in hrefs if "console." not in href} <= {
                "/dashboard",
                *(f"/dashboard/{each}" for each in OF_EVERYBODY),
            }
            continue
        if page.path == "":
            assert (answer.status_code, answer.headers["location"]) == (302, "/board")
            assert live.status_code == 204
            continue
        assert answer.status_code == 403, path
        for control in ("<form", "<table", 'class="side-link"'):
            shown = answer.text.replace('<form method="post" action="/dashboard/theme"', "")
            if control == "<form":
                acts = re.findall(r'name="act" value="([^"]+)"', shown)
                assert acts == [], (path, acts)
            else:
                assert control not in shown, (path, control)
        assert part.status_code == 403, path
        assert "data-live" not in part.text
        assert live.status_code == 204, path
    for page, name in forms():
        if page.right == "manage":
            fields = {"act": name, "confirmed": "yes", "name": "x"}
            answer = member.post(addresses[page.path], data=fields)
            assert answer.status_code == 403, (page.path, name)
    assert state(owner) == before


def test_who_is_not_signed_in_sees_nothing_and_can_call_nothing(
    gateway: Gateway, owner: httpx.Client, addresses: dict[str, str]
) -> None:
    before = state(owner)
    with gateway.client(headers={"origin": gateway.url}) as nobody:
        for page in all_pages():
            path = addresses[page.path]
            beside = "&" if "?" in path else "?"
            for address in (path, f"{path}{beside}part=request"):
                answer = nobody.get(address)
                assert answer.status_code == 302, address
                assert answer.headers["location"].startswith("/login?return_to=")
            live = nobody.get(f"/dashboard/live?{urlencode({'at': path})}")
            assert live.status_code in (204, 302)
            for name in page.actions:
                fields = {"act": name, "confirmed": "yes"}
                answer = nobody.post(path, data=fields)
                assert answer.status_code in (302, 303, 401, 403), (path, name)
    assert state(owner) == before


def test_every_page_is_shut_to_frames_and_to_scripts_that_are_not_ours(
    owner: httpx.Client, addresses: dict[str, str]
) -> None:
    nonces: set[str] = set()
    shown = 0
    for page in all_pages():
        answer = owner.get(addresses[page.path])
        assert "no-store" in answer.headers["cache-control"], page.path
        if not answer.headers["content-type"].startswith("text/html"):
            if answer.status_code == 200:
                assert "attachment" in answer.headers["content-disposition"], page.path
            continue
        shown += 1
        policy = answer.headers["content-security-policy"]
        nonce = re.search(r"script-src 'nonce-([\w-]{20,})';", policy)
        assert nonce is not None, page.path
        nonces.add(nonce[1])
        scripts = re.findall(r"<script\b([^>]*)>", answer.text)
        assert scripts, page.path
        assert all(f'nonce="{nonce[1]}"' in each for each in scripts), page.path
        for part in ("default-src 'none'", "frame-ancestors 'none'", "form-action 'self'"):
            assert part in policy, page.path
        assert "unsafe" not in policy, page.path
        assert answer.headers["x-frame-options"] == "DENY", page.path
        for banned in (r"\son\w+=", r"\sstyle=", r"(?:src|href)=\"(?:https?:)?//"):
            found = re.search(rf"<[a-z](?:[^>\"]|\"[^\"]*\")*?{banned}", answer.text)
            assert found is None or "https://" in found[0], (page.path, banned)
    assert len(nonces) == shown > 40, "a nonce is for one page"


@needs_chromium
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_what_strangers_wrote_runs_nowhere_and_breaks_no_page(
    gateway: Gateway, owner: httpx.Client, addresses: dict[str, str], browser: Any
) -> None:
    more = [
        "/dashboard/usage?by=combo&window=24h",
        "/dashboard/usage?by=tag",
        "/dashboard/usage?by=provider",
        f"/dashboard/logs?{urlencode({'model': HOSTILE})}",
        f"/dashboard/keys?{urlencode({'q': MARKUP})}",
        f"/dashboard/providers/new?{urlencode({'q': MARKUP})}",
        f"/dashboard/models?{urlencode({'q': MARKUP})}",
    ]
    with Tab(browser, gateway, owner, viewport=NARROW) as tab:
        for path in (*addresses.values(), *more):
            answer = owner.get(path)
            if not answer.headers["content-type"].startswith("text/html"):
                continue
            if answer.status_code != 200:
                continue
            tab.page.goto(path)
            tab.page.evaluate(
                "document.querySelectorAll('details').forEach(each => { each.open = true; })"
            )
            assert tab.fits(), path
            # What is markup of strangers has no element.
            strange = "img[src='x'], svg[onload], script:not([nonce])"
            assert tab.page.locator(strange).count() == 0, path
            assert tab.complaints == [], (path, tab.complaints)
