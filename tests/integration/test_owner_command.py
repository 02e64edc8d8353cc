"""`fairlead owner reset-password`: the way back in, whether the gateway runs or not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

from tests.support.processes import Gateway, expect

FIRST = "the first password of all"


def reset(gateway: Gateway, *flags: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FAIRLEAD_")}
    return subprocess.run(
        [sys.executable, "-m", "fairlead", "owner", "reset-password", *flags],
        env=clean | {"FAIRLEAD_DATA_DIR": str(gateway.data_dir)},
        input=typed,
        capture_output=True,
        text=True,
        timeout=60,
    )


def status_of(gateway: Gateway, password: str) -> int:
    body = {"password": password}
    return gateway.client().post("/api/auth/login", json=body).status_code


def test_the_running_instance_takes_the_new_password(gateways: Callable[..., Gateway]) -> None:
    gateway = gateways(INITIAL_PASSWORD=FIRST)
    browser = gateway.client()
    expect(browser.post("/api/auth/login", json={"password": FIRST}), 200)
    done = reset(gateway, "--stdin", typed="the second password\n")
    assert done.returncode == 0, done.stderr
    assert "The running instance" in done.stderr
    assert done.stdout == ""
    assert browser.get("/api/auth/me").status_code == 401
    # What is stored goes before the initial password.
    assert (status_of(gateway, FIRST), status_of(gateway, "the second password")) == (401, 200)


def test_the_data_directory_takes_it_while_nothing_runs(gateways: Callable[..., Gateway]) -> None:
    gateway = gateways()
    assert expect(gateway.client().get("/api/auth/status"), 200)["needsSetup"] is True
    answer = gateway.client().post("/setup", json={"password": FIRST})
    expect(answer, 201)
    cookie = {"Cookie": f"auth_token={answer.cookies['auth_token']}"}
    expect(gateway.client().get("/api/auth/me", headers=cookie), 200)
    # Killed at once: the address file and the lock file are still there.
    gateway.kill_all()
    done = reset(gateway, "--generate")
    assert done.returncode == 0, done.stderr
    assert "The data directory" in done.stderr
    password = done.stdout.strip()
    gateway.canaries.append(password)
    assert len(password) >= 24
    gateway.start()
    expect(gateway.client().get("/api/auth/me", headers=cookie), 401)
    assert (status_of(gateway, FIRST), status_of(gateway, password)) == (401, 200)
    gateway.assert_keeps_secrets()


def test_a_password_that_would_not_do_is_refused(gateways: Callable[..., Gateway]) -> None:
    gateway = gateways(INITIAL_PASSWORD=FIRST)
    for typed in ("short\n", "\n", "your-password\n", "x" * 201 + "\n"):
        done = reset(gateway, "--stdin", typed=typed)
        assert done.returncode == 1, typed
        assert done.stderr.startswith("fairlead: The password ")
        assert len(done.stderr.splitlines()) == 1
    assert status_of(gateway, FIRST) == 200
