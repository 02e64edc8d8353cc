"""A client of a running instance on this machine, authenticated by its local token."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

import httpx

from fairlead.cli.failure import CommandFailed
from fairlead.errors import Refusal
from fairlead.host import is_loopback

_DEFAULT_URL: Final = "http://127.0.0.1:20128"
_TIMEOUT_S: Final = 30.0
_PAGE: Final = 500


class Instance:
    """A client of the management API. Raises `CommandFailed` with the API's own sentence for an error."""

    def __init__(self, url: str | None, data_dir: Path) -> None:
        folder = data_dir.expanduser()
        self.url = (url or _recorded_url(folder) or _DEFAULT_URL).rstrip("/")
        self._token_path = folder / "cli-token"
        _check_local(self.url)
        # Checked to be this machine: there is no name to verify and no proxy to go through.
        self._http = httpx.Client(
            base_url=self.url,
            timeout=_TIMEOUT_S,
            trust_env=False,
            verify=False,  # noqa: S501
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.close()

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        return _answer(self._request("GET", path, params=query))

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return _answer(self._request("POST", path, json=body))

    def delete(self, path: str) -> dict[str, Any]:
        return _answer(self._request("DELETE", path))

    def list_all(self, path: str, name: str) -> list[dict[str, Any]]:
        """All entries of a list, page after page."""
        found: list[dict[str, Any]] = []
        while True:
            page = self.get(path, limit=_PAGE, offset=len(found))
            found += page[name]
            if not page[name] or len(found) >= page["total"]:
                return found

    def probe(self, path: str) -> tuple[int, dict[str, Any]]:
        """Status and body of a page that needs no credential."""
        with self._reachable():
            answer = self._http.get(path)
        return answer.status_code, _json(answer)

    def _request(self, method: str, path: str, **options: Any) -> httpx.Response:
        headers = {"x-gateway-cli-token": self._token()}
        with self._reachable():
            return self._http.request(method, path, headers=headers, **options)

    def _token(self) -> str:
        try:
            return self._token_path.read_text("ascii").strip()
        except OSError as error:
            raise CommandFailed(
                f"the local token {self._token_path} cannot be read ({error.strerror}): name the "
                "running instance's directory with --data-dir, as the user that it runs as."
            ) from None

    @contextmanager
    def _reachable(self) -> Iterator[None]:
        try:
            yield
        except httpx.TransportError as error:
            raise CommandFailed(
                f"nothing answers at {self.url} ({type(error).__name__}): start it with "
                "`fairlead serve`, or name its address with --url."
            ) from None


def _recorded_url(data_dir: Path) -> str | None:
    try:
        return (data_dir / "run" / "url").read_text("ascii").strip() or None
    except OSError:
        return None


def _check_local(url: str) -> None:
    if not is_loopback(urlsplit(url).hostname or ""):
        raise Refusal(
            f"--url (FAIRLEAD_URL): {url} is not on this machine, and the local token counts "
            "nowhere else: run the command there, or use the API with a key of scope `manage`."
        )


def _answer(response: httpx.Response) -> dict[str, Any]:
    body = _json(response)
    if response.is_success:
        return body
    error = body.get("error")
    message = error.get("message") if isinstance(error, dict) else None
    raise CommandFailed(str(message or f"the instance answered {response.status_code}."))


def _json(response: httpx.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
