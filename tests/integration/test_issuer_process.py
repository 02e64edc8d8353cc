"""`fairlead issuer` as a process: many callers at once, `kill -9` in the middle, and the commands about it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.agents import IssuerProcess, inherited, register, start_issuer, token_of
from tests.support.polling import eventually
from tests.support.tls import NO_AUTHORITIES

DID = "did:fairlead:test:process:1"
SECRET = "canary-of-a-secret-in-another-process"


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IssuerProcess]:
    with start_issuer(tmp_path_factory.mktemp("issuer")) as running:
        register(running.admin_url, DID, SECRET)
        yield running
    text = running.log_path.read_bytes()
    for path in running.data_dir.iterdir():
        text += path.read_bytes()
    assert SECRET.encode() not in text
    assert b"fla_" not in text


def is_active(issuer: IssuerProcess, token: str, client: httpx.Client | None = None) -> bool:
    url, form = f"{issuer.admin_url}/admin/oauth2/introspect", {"token": token}
    post = httpx.post if client is None else client.post
    answer = post(url, data=form)
    assert answer.status_code == 200, answer.text
    if not answer.json()["active"]:
        assert answer.json() == {"active": False}
    return bool(answer.json()["active"])


def test_fifty_tokens_at_once(issuer: IssuerProcess) -> None:
    with ThreadPoolExecutor(50) as pool:
        tokens = list(pool.map(lambda _: token_of(issuer.url, DID, SECRET), range(50)))
        assert len(set(tokens)) == 50
        assert all(pool.map(lambda token: is_active(issuer, token), tokens))


def test_whoever_asks_after_the_revocation_was_answered_is_told_so(issuer: IssuerProcess) -> None:
    """Readers ask on and on while the token is revoked: none sees it alive after the answer."""
    for _ in range(5):
        token = token_of(issuer.url, DID, SECRET)
        ended, stop = threading.Event(), threading.Event()
        wrong: list[str] = []

        def read(
            token: str = token, ended: Any = ended, stop: Any = stop, wrong: Any = wrong
        ) -> None:
            with httpx.Client(trust_env=False, verify=NO_AUTHORITIES) as client:
                while not stop.is_set():
                    was_ended = ended.is_set()
                    if is_active(issuer, token, client) and was_ended:
                        wrong.append("alive after its end")

        readers = [threading.Thread(target=read) for _ in range(4)]
        for reader in readers:
            reader.start()
        answer = httpx.post(
            f"{issuer.url}/oauth2/revoke",
            trust_env=False,
            data={"token": token, "client_id": DID, "client_secret": SECRET},
            verify=NO_AUTHORITIES,
        )
        ended.set()
        assert answer.status_code == 200
        assert not is_active(issuer, token)
        stop.set()
        for reader in readers:
            reader.join(10)
        assert wrong == []


def test_what_was_acknowledged_outlives_kill_9(tmp_path: Path) -> None:
    """Clients, tokens and revocations, killed under load: whatever a caller was told is so afterwards."""
    with start_issuer(tmp_path) as issuer:
        register(issuer.admin_url, DID, SECRET)
        told: list[str] = []
        gone: list[str] = []
        stop = threading.Event()

        def load(number: int) -> None:
            with httpx.Client(trust_env=False, timeout=5, verify=NO_AUTHORITIES) as client:
                while not stop.is_set():
                    try:
                        answer = client.post(
                            f"{issuer.url}/oauth2/token",
                            data={
                                "grant_type": "client_credentials",
                                "client_id": DID,
                                "client_secret": SECRET,
                            },
                        )
                        token = answer.json()["access_token"]
                        if number % 2:
                            told.append(token)
                            continue
                        url = f"{issuer.admin_url}/admin/oauth2/revoke"
                        if client.post(url, data={"token": token}).status_code == 200:
                            gone.append(token)
                    except httpx.HTTPError:
                        return

        threads = [threading.Thread(target=load, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        eventually(lambda: len(told) > 50 and len(gone) > 20, "there is load", within_s=30)
        issuer.kill()
        stop.set()
        for thread in threads:
            thread.join(10)
        issuer.start()
        with httpx.Client(trust_env=False, verify=NO_AUTHORITIES) as client:
            assert all(is_active(issuer, token, client) for token in told)
            assert not any(is_active(issuer, token, client) for token in gone)
        assert token_of(issuer.url, DID, SECRET)
        assert issuer.stop() == 0


def run(issuer: IssuerProcess, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fairlead", *arguments],
        env=inherited()
        | {"ISSUER__ADMIN_URL": issuer.admin_url, "FAIRLEAD_DATA_DIR": str(issuer.data_dir)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_commands(issuer: IssuerProcess, tmp_path: Path) -> None:
    made = json.loads(run(issuer, "agent", "register", "bot", "--owner", "me", "--json").stdout)
    kind, method, owner, name, uuid = made["client_id"].split(":")
    assert (kind, method, owner, name, len(uuid)) == ("did", "fairlead", "me", "bot", 36)
    assert len(made["client_secret"]) == 43
    token = token_of(issuer.url, made["client_id"], made["client_secret"], "agent:read")
    assert is_active(issuer, token)
    listed = run(issuer, "agent", "list")
    assert made["client_id"] in listed.stdout
    assert made["client_secret"] not in run(issuer, "agent", "list", "--json").stdout
    assert run(issuer, "agent", "revoke", "bot", "--tokens-only").returncode == 0
    assert not is_active(issuer, token)
    again = token_of(issuer.url, made["client_id"], made["client_secret"])
    assert run(issuer, "agent", "revoke", "bot").returncode == 0
    assert not is_active(issuer, again)
    missing = run(issuer, "agent", "revoke", "bot")
    assert missing.returncode == 1
    assert "agent list" in missing.stderr
    file = tmp_path / "client.json"
    saved = run(issuer, "agent", "register", "kept", "--save", str(file))
    kept = json.loads(file.read_text())
    assert kept["client_secret"] not in saved.stdout + saved.stderr
    assert file.stat().st_mode & 0o777 == 0o600
    assert token_of(issuer.url, kept["client_id"], kept["client_secret"])
    assert run(issuer, "agent", "register", "kept", "--save", str(file)).returncode == 1
    assert run(issuer, "agent", "register", "two words").returncode == 1


def test_one_process_has_the_file_and_the_port(issuer: IssuerProcess, tmp_path: Path) -> None:
    second = run(issuer, "issuer", "--port", "1", "--admin-port", "2")
    assert (second.returncode, second.stderr.count("\n")) == (2, 1)
    assert "issuer.duckdb is open in another process" in second.stderr
    taken = run(issuer, "issuer", "--port", str(issuer.port), "--data-dir", str(tmp_path / "other"))
    assert taken.returncode == 2
    assert "ISSUER__PORT" in taken.stderr
    public = run(issuer, "issuer", "--host", "0.0.0.0", "--data-dir", str(tmp_path / "other"))
    assert public.returncode == 2
    assert "in clear" in public.stderr
