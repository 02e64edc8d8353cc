"""A client of a running gateway: this machine's by its local token, another one by the credential of its context."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import httpx

from fairlead.cli.failure import CommandFailed, GatewayRefused
from fairlead.cli.gateway_address import GatewayAddress, find_gateway

_TIMEOUT_S: Final = 30.0
_PAGE: Final = 500


class AnswerObject(dict[str, Any]):
    """An object of the API's answer; a field that is missing is the fault of a gateway of another version."""

    def __missing__(self, name: str) -> Any:
        raise CommandFailed(
            f"the gateway's answer has no field `{name}`: install the version of fairlead here that "
            "`fairlead status` shows there."
        )


class Instance:
    """A client of one gateway. Raises `CommandFailed` with the API's own sentence for an error."""

    def __init__(self, url: str | None, data_dir: Path, *, timeout_s: float = _TIMEOUT_S) -> None:
        self._open(find_gateway(url, data_dir), timeout_s)

    @classmethod
    def of(cls, address: GatewayAddress) -> Self:
        """A client of the gateway at an address that is known."""
        made = cls.__new__(cls)
        made._open(address, _TIMEOUT_S)  # noqa: SLF001
        return made

    def _open(self, address: GatewayAddress, timeout_s: float) -> None:
        self.address = address
        self.url = address.url
        # A proxy of this machine's environment has nothing to do with its own instance.
        self._http = httpx.Client(
            base_url=self.url,
            timeout=timeout_s,
            trust_env=not address.is_local,
            verify=address.tls,
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
        return answer_of(self.request("GET", path, params=_named(query)))

    def post(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        return answer_of(self.request("POST", path, json=body))

    def put(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return answer_of(self.request("PUT", path, json=body))

    def patch(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return answer_of(self.request("PATCH", path, json=body))

    def delete(self, path: str, **query: Any) -> dict[str, Any]:
        return answer_of(self.request("DELETE", path, params=_named(query)))

    def list_all(self, path: str, name: str) -> list[dict[str, Any]]:
        """All entries of a list, page after page."""
        found: list[dict[str, Any]] = []
        while True:
            page = self.get(path, limit=_PAGE, offset=len(found))
            found += page[name]
            if not page[name] or len(found) >= page["total"]:
                return found

    def text(self, path: str) -> str:
        """A page that is no JSON."""
        answer = self.request("GET", path)
        if not answer.is_success:
            answer_of(answer)
        return answer.text

    def probe(self, path: str) -> tuple[int, dict[str, Any]]:
        """Status and body of a page that needs no credential."""
        with self._reachable():
            answer = self._http.get(path)
        return answer.status_code, _json(answer)

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """The answer, whatever its status. Raises `CommandFailed` where nothing answers."""
        headers = {**self.address.headers(path), **options.pop("headers", {})}
        with self._reachable():
            return self._http.request(method, path, headers=headers, **options)

    @contextmanager
    def stream(self, method: str, path: str, **options: Any) -> Iterator[httpx.Response]:
        """A successful answer whose body is read as it comes, however long that takes."""
        headers = {**self.address.headers(path), **options.pop("headers", {})}
        patience = httpx.Timeout(_TIMEOUT_S, read=None)
        with (
            self._reachable(),
            self._http.stream(method, path, headers=headers, timeout=patience, **options) as answer,
        ):
            if not answer.is_success:
                answer.read()
                answer_of(answer)
            yield answer

    @contextmanager
    def _reachable(self) -> Iterator[None]:
        try:
            yield
        except httpx.TransportError as error:
            raise CommandFailed(self._why_unreachable(error)) from None

    def _why_unreachable(self, error: httpx.TransportError) -> str:
        if (refusal := _certificate_refusal(error)) is not None:
            return (
                f"the certificate of {self.url} is not trusted ({refusal}): name the authority that "
                "signed it with `fairlead login --ca-file`."
            )
        if isinstance(error, httpx.ReadTimeout | httpx.WriteTimeout):
            return f"{self.url} took too long to answer: `fairlead status` says how it is."
        if isinstance(error, httpx.RemoteProtocolError | httpx.ReadError):
            return f"{self.url} broke off in the middle of its answer: try again."
        where = (
            "start it with `fairlead serve`, or name its address with --url."
            if self.address.is_local
            else "check the address with `fairlead contexts list`."
        )
        return f"nothing answers at {self.url} ({type(error).__name__}): {where}"


def _certificate_refusal(error: BaseException) -> str | None:
    """Why TLS was refused, where that is what happened."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return cause.verify_message
        cause = cause.__cause__ or cause.__context__
    return None


def _named(query: dict[str, Any]) -> dict[str, Any]:
    """The parameters that are set."""
    return {name: value for name, value in query.items() if value is not None}


def answer_of(response: httpx.Response) -> dict[str, Any]:
    """The body of a successful answer. Raises `GatewayRefused` with the API's sentence for another."""
    body = _json(response)
    if response.is_success:
        return body
    error = body.get("error")
    message = error.get("message") if isinstance(error, dict) else None
    sentence = str(message or f"The gateway answered {response.status_code}.")
    if isinstance(error, dict) and error.get("code") == "control_unavailable":
        sentence += " Try again in a moment."
    raise GatewayRefused(sentence, response.status_code)


def _json(response: httpx.Response) -> dict[str, Any]:
    try:
        body = response.json(object_hook=AnswerObject)
    except ValueError:
        return AnswerObject()
    return body if isinstance(body, dict) else AnswerObject()
