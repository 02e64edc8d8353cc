"""`fairlead login` and contexts: a credential goes where it was meant for, checked, and is not shown."""

from __future__ import annotations

import json
import os
import re
import shutil
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.command import Completed, fairlead, sentence
from tests.support.owner import OWNER_PASSWORD
from tests.support.processes import Gateway, Lane, expect
from tests.support.upstream import Upstream, completion, reply

Run = Callable[..., Completed]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a command whose contexts are the test's own; nothing is found on this machine."""
    return lambda *arguments, **more: fairlead(
        *arguments, XDG_CONFIG_HOME=str(tmp_path / "config"), HOME=str(tmp_path), **more
    )


def token_of(gateway: Gateway, scope: str) -> str:
    """A fresh access token."""
    made = expect(gateway.admin.post("/api/auth/tokens", json={"name": scope, "scope": scope}), 201)
    gateway.canaries.append(made["token"])
    return str(made["token"])


def test_commands_work_at_a_gateway_that_was_signed_in_at(
    run: Run, gateway: Gateway, lane: Lane, tmp_path: Path
) -> None:
    token = token_of(gateway, "write")
    key_file = tmp_path / "key"
    key_file.write_text(gateway.key)
    name = ("--name", "work", "--api-key-file", str(key_file))
    signed_in = run("login", gateway.url, *name, "--token-file", "-", typed=token)
    assert signed_in.returncode == 0, signed_in
    assert token not in signed_in.stdout + signed_in.stderr
    assert json.loads(run("keys", "list", "--json").stdout)["keys"] is not None
    lane.upstream.script(reply(completion("from elsewhere")))
    answer = run("chat", "-m", lane.model, "--json", "hi")
    assert "from elsewhere" in answer.stdout, answer
    listed = run("contexts", "list", "--json").stdout
    assert json.loads(listed)["current"] == "work"
    assert token not in listed + run("contexts", "list").stdout

    assert run("contexts", "use", "local").returncode == 0
    assert "cli-token" in sentence(run("keys", "list"), 1)
    assert run("--context", "work", "keys", "list").returncode == 0
    assert run("keys", "list", FAIRLEAD_CONTEXT="work").returncode == 0
    assert run("contexts", "use", "work").returncode == 0
    removed = json.loads(run("contexts", "remove", "work", "--json").stdout)
    assert removed == {"removed": "work", "current": "local"}
    assert "no context work" in sentence(run("--context", "work", "keys", "list"), 1)


def test_a_token_is_made_listed_and_revoked(run: Run, gateway: Gateway) -> None:
    here = {"FAIRLEAD_DATA_DIR": str(gateway.data_dir)}
    token = run("tokens", "create", "of the command line", "--scope", "read", **here).stdout.strip()
    gateway.canaries.append(token)
    assert token.startswith("flm_")
    assert run("login", gateway.url, "--token-file", "-", typed=token).returncode == 0
    assert token not in run("tokens", "list", "--json", **here).stdout
    assert run("tokens", "revoke", "of the command line", **here).returncode == 0
    assert "revoked" in sentence(run("--context", "127.0.0.1", "health"), 1)


def test_what_a_credential_may_not_do_is_told(run: Run, gateway: Gateway) -> None:
    run("login", gateway.url, "--token-file", "-", typed=token_of(gateway, "read"))
    assert run("health").returncode in (0, 1)
    assert "write" in sentence(run("keys", "create", "x"), 1)
    assert sentence(run("backup", "create"), 1)


def test_a_key_calls_models_and_does_not_manage(run: Run, gateway: Gateway) -> None:
    key = gateway.create_key(name="caller alone")["key"]
    signed_in = run("login", gateway.url, "--token-file", "-", typed=key)
    assert "management is closed" in signed_in.stdout
    assert run("models").returncode == 0
    assert sentence(run("keys", "list"), 1)


def test_a_wrong_credential_is_not_kept(run: Run, gateway: Gateway) -> None:
    assert sentence(run("login", gateway.url, "--token-file", "-", typed="flm_wrong"), 1)
    assert "visible" in sentence(
        run("login", gateway.url, "--token-file", "-", typed="two words"), 1
    )
    assert "no contexts" in run("contexts", "list").stdout


def test_a_credential_does_not_cross_a_network_in_clear(run: Run) -> None:
    ended = run("login", "http://192.0.2.1", "--token-file", "-", typed="flm_x")
    assert "in clear" in sentence(ended, 2)


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[tuple[Upstream, Path]]:
    """A server with a certificate that signs itself, and the certificate's file."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command to make a certificate")
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    names = [
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-keyout",
        str(key),
        "-out",
        str(certificate),
    ]
    subprocess.run([*command.split(), *names], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with Upstream(tls) as server:
        server.script(reply({"status": "healthy"}))
        yield server, certificate


def test_certificates_are_checked(run: Run, secured: tuple[Upstream, Path]) -> None:
    server, certificate = secured
    url = server.url.removesuffix("/v1")
    refused = run("login", url, "--token-file", "-", typed="flm_x")
    assert "--ca-file" in sentence(refused, 1)
    assert server.requests == [], "nothing was sent to a server that is not trusted"
    trusted = run("login", url, "--ca-file", str(certificate), "--token-file", "-", typed="flm_x")
    assert trusted.returncode == 0, trusted
    unchecked = run(
        "login", url, "--insecure", "--name", "loose", "--token-file", "-", typed="flm_x"
    )
    assert unchecked.returncode == 0
    assert "WARNING" in unchecked.stderr
    assert "WARNING" in run("--context", "loose", "config", "show", "--json").stderr


def test_a_gateway_of_another_version_is_no_traceback(
    run: Run, secured: tuple[Upstream, Path]
) -> None:
    server, certificate = secured
    url = server.url.removesuffix("/v1")
    run("login", url, "--ca-file", str(certificate), "--token-file", "-", typed="flm_x")
    assert "no field `data`" in sentence(run("models"), 1)
    assert "no field `nodes`" in sentence(run("health"), 1)
    server.script(reply(b"<html>", content_type="text/html"))
    assert "no field" in sentence(run("quota"), 1)


def test_a_person_signs_the_command_line_in_with_a_browser(
    owned_gateway: Gateway, tmp_path: Path
) -> None:
    gateway = owned_gateway
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "fairlead", "login", gateway.url, "--device"]
    with subprocess.Popen(
        [*command, "--scope", "admin", "--json"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as waiting:
        assert waiting.stderr is not None
        shown = waiting.stderr.readline()
        found = re.search(r"enter the code ([A-Z]{4}-[A-Z]{4})", shown)
        assert found, shown
        person = gateway.client(headers={"origin": gateway.url})
        expect(person.post("/api/auth/login", json={"password": OWNER_PASSWORD}), 200)
        form = {"user_code": found[1], "action": "approve"}
        assert "Signed in" in person.post("/oauth/device", data=form).text
        said, errors = waiting.communicate(timeout=60)
    assert waiting.returncode == 0, errors
    assert json.loads(said)["manages"] is True
    kept = tmp_path / "fairlead/contexts.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    (context,) = json.loads(kept.read_text())["contexts"].values()
    gateway.canaries.append(context["token"])
    assert context["token"].startswith("flm_")
    assert context["token"] not in said + errors
    bearer = {"authorization": f"Bearer {context['token']}"}
    assert gateway.client(headers=bearer).get("/api/settings").status_code == 200
