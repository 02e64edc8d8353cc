"""A tab of a real browser whose every complaint fails the test."""

from __future__ import annotations

from typing import Any, Self

import httpx

from tests.support.processes import Gateway

WIDE = {"width": 1280, "height": 760}
PHONE = {"width": 390, "height": 844}


class Tab:
    """A page whose every complaint is remembered: dialogs, errors, what a policy blocked."""

    def __init__(self, browser: Any, gateway: Gateway, owner: httpx.Client | None, **options: Any):
        self.context = browser.new_context(
            base_url=gateway.url, viewport=options.pop("viewport", WIDE), **options
        )
        if owner is not None:
            cookie = {"name": "auth_token", "value": owner.cookies["auth_token"]}
            self.context.add_cookies([cookie | {"url": gateway.url}])
        self.page = self.context.new_page()
        self.page.set_default_timeout(15_000)
        self.complaints: list[str] = []
        self.page.on("dialog", self._dialog)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on(
            "console",
            lambda said: self.complaints.append(said.text) if said.type == "error" else None,
        )

    def _dialog(self, dialog: Any) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def said(self) -> str:
        return str(self.page.locator("#live").inner_text())

    def hears(self, words: str) -> None:
        from playwright.sync_api import expect

        expect(self.page.locator("#live")).to_contain_text(words)

    def fits(self) -> bool:
        """Nothing is wider than the window, which a phone would widen for it."""
        wanted = self.page.viewport_size["width"]
        width = "Math.max(document.documentElement.scrollWidth, window.innerWidth)"
        return bool(self.page.evaluate(width) <= wanted)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()
        assert self.complaints == [], self.complaints
