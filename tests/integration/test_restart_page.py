"""While management restarts, a browser gets a page that loads itself again, and a program the error as JSON."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable

import httpx
import pytest

from tests.support.polling import eventually
from tests.support.processes import Gateway

HTML = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
PLACES = ("/dashboard", "/dashboard/keys?q=a", "/login", "/board", "/oauth/authorize", "/setup")


@pytest.mark.both_fronts
def test_browsers_get_a_page_that_loads_itself_again(gateways: Callable[..., Gateway]) -> None:
    gateway = gateways()
    # Its key is made while control is there.
    caller = gateway.caller
    pages: dict[str, httpx.Response] = {}
    programs: dict[str, httpx.Response] = {}

    def saw_all() -> bool:
        if len(pages) < len(PLACES) or len(programs) < len(PLACES):
            gateway.control.kill()
        for place in PLACES:
            answer = caller.get(place, headers=HTML)
            if answer.status_code == 503:
                pages[place] = answer
            plain = caller.get(place, headers={"accept": "application/json"})
            if plain.status_code == 503:
                programs[place] = plain
        return len(pages) == len(programs) == len(PLACES)

    eventually(saw_all, "every page was asked for while control was away", within_s=60)
    for place, answer in pages.items():
        assert answer.headers["content-type"] == "text/html; charset=utf-8", place
        assert answer.headers["cache-control"] == "no-store"
        assert int(answer.headers["retry-after"]) >= 1
        assert '<meta http-equiv="refresh" content="1">' in answer.text
        assert "<script" not in answer.text
        style = re.search(r"<style>(.*)</style>", answer.text)
        assert style is not None
        digest = base64.b64encode(hashlib.sha256(style.group(1).encode()).digest()).decode()
        assert f"'sha256-{digest}'" in answer.headers["content-security-policy"]
        assert "default-src 'none'" in answer.headers["content-security-policy"]
    for place, answer in programs.items():
        assert answer.headers["content-type"].startswith("application/json"), place
        told = answer.json()["error"]
        # An authorization server's error is a string (RFC 6749, 5.2).
        code = told if isinstance(told, str) else told["code"]
        assert code in ("control_unavailable", "temporarily_unavailable"), place
    eventually(gateway.manages, "control is back", within_s=30, every_s=0.1)
    gateway.remember_processes()
