"""Agents of a running gateway, and issuers for their callers."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.support.polling import eventually
from tests.support.process import free_port
from tests.support.processes import Gateway
from tests.support.tls import NO_AUTHORITIES

SCOPE = "openid offline agent:read agent:write"
_numbers = itertools.count()


def inherited() -> dict[str, str]:
    """The environment without what would set fairlead up."""
    prefixes = ("FAIRLEAD_", "SERVICE_", "AUTH__", "ISSUER__")
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(prefixes) and not name.lower().endswith("_proxy")
    }


@dataclass
class IssuerProcess:
    """`fairlead issuer` as an operator starts it."""

    data_dir: Path
    port: int
    admin_port: int
    environment: dict[str, str]
    popen: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def admin_url(self) -> str:
        return f"http://127.0.0.1:{self.admin_port}"

    @property
    def log_path(self) -> Path:
        return self.data_dir.with_suffix(".log")

    def start(self) -> None:
        command = [sys.executable, "-m", "fairlead", "issuer", "--port", str(self.port)]
        command += ["--admin-port", str(self.admin_port), "--data-dir", str(self.data_dir)]
        with self.log_path.open("ab") as log:
            begun = log.tell()
            self.popen = subprocess.Popen(
                command, env=inherited() | self.environment, stdout=log, stderr=log
            )
        popen = self.popen

        def is_ready() -> bool:
            assert popen.poll() is None, self.log_path.read_text()
            return b"fairlead issuer ready" in self.log_path.read_bytes()[begun:]

        eventually(is_ready, "the issuer is ready", within_s=30)

    def kill(self) -> None:
        """`kill -9`."""
        assert self.popen is not None
        self.popen.kill()
        self.popen.wait(10)

    def stop(self) -> int:
        assert self.popen is not None
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGTERM)
        try:
            return self.popen.wait(15)
        except subprocess.TimeoutExpired:
            self.kill()
            raise


@contextlib.contextmanager
def start_issuer(tmp_path: Path, **environment: str) -> Iterator[IssuerProcess]:
    """An issuer in a process of its own, with a fresh data directory."""
    data_dir = tmp_path / f"issuer-{next(_numbers)}"
    issuer = IssuerProcess(data_dir, free_port(), free_port(), environment)
    issuer.start()
    try:
        yield issuer
    finally:
        issuer.stop()


def register(admin_url: str, client_id: str, secret: str, scope: str = SCOPE) -> dict[str, Any]:
    """A client of an issuer."""
    answer = httpx.post(
        f"{admin_url}/admin/clients",
        json={
            "client_id": client_id,
            "client_secret": secret,
            "scope": scope,
            "grant_types": ["client_credentials"],
            "response_types": ["token"],
            "token_endpoint_auth_method": "client_secret_post",
        },
        trust_env=False,
        verify=NO_AUTHORITIES,
    )
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def token_of(url: str, client_id: str, secret: str, scope: str | None = None) -> str:
    """An access token."""
    form = {
        "grant_type": "client_credentials",
        "client_id": client_id,
        "client_secret": secret,
    }
    answer = httpx.post(
        f"{url}/oauth2/token",
        data=form if scope is None else {**form, "scope": scope},
        trust_env=False,
        verify=NO_AUTHORITIES,
    )
    assert answer.status_code == 200, answer.text
    return str(answer.json()["access_token"])


def make_agent(gateway: Gateway, model: str, **fields: Any) -> dict[str, Any]:
    """A stored agent skill that asks `model` as the gateway's own test key."""
    number = next(_numbers)
    body = {
        "name": f"agent-{number}",
        "description": "Answers.",
        "prompt": "You answer tests.",
        "model": model,
        "apiKeyId": key_id(gateway),
        **fields,
    }
    answer = gateway.admin.post("/api/agent-skills", json=body)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def key_id(gateway: Gateway) -> str:
    """The id of the key that `gateway.key` is."""
    assert gateway.key
    keys = gateway.admin.get("/api/keys", params={"limit": 500}).json()["keys"]
    return str(next(key["id"] for key in keys if key["name"] == "everything"))


def rpc(
    client: httpx.Client, path: str, method: str, params: Any, token: str | None = None, **more: Any
) -> httpx.Response:
    """One JSON-RPC call of an agent."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    body = {"jsonrpc": "2.0", "id": next(_numbers), "method": method, "params": params}
    return client.post(path, json=body, headers={**headers, **more})


def say(text: str, **fields: Any) -> dict[str, Any]:
    """The parameters of `message/send`."""
    parts = [{"kind": "text", "text": text}]
    message = {"kind": "message", "messageId": f"m{next(_numbers)}", "role": "user", "parts": parts}
    settings: dict[str, Any] = {
        name: fields.pop(name) for name in ("configuration", "metadata") if name in fields
    }
    return {"message": {**message, **fields}, **settings}
