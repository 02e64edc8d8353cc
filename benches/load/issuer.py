"""Measures the token issuer inside control: introspections and tokens a second, and their p99.

    python benches/load/issuer.py [--rounds N] [--seconds N] [--alone]

One gateway as an operator starts it, with `ISSUER__ENABLED=true`: the one control worker answers, at the
niceness that control has. `--alone` measures `fairlead issuer` instead. Rounds take turns; the best round
is what the machine can do, the others say how quiet it was. Exit code 1 when the best misses a goal.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

import process
from measure import SCRIPT, wrk_version

GOALS = {"introspect": 3000, "token": 800}
P99_GOAL_US = 20_000
CONNECTIONS = {"introspect": 16, "token": 8}
FORM = "Content-Type: application/x-www-form-urlencoded"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(alone: bool) -> Iterator[tuple[str, str, int]]:
    """The public and the admin address of a running issuer, and its process."""
    port, admin_port = free_port(), free_port()
    urls = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{admin_port}"
    with tempfile.TemporaryDirectory(prefix="fairlead-issuer-") as folder:
        command = [sys.executable, "-m", "fairlead"]
        environment = {**os.environ, "FAIRLEAD_DATA_DIR": str(Path(folder, "data"))}
        environment |= {"ISSUER__PORT": str(port), "ISSUER__ADMIN_PORT": str(admin_port)}
        if alone:
            command += ["issuer"]
        else:
            command += ["serve", "--port", str(free_port())]
            environment["ISSUER__ENABLED"] = "true"
        with Path(folder, "log").open("wb") as log:
            popen = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            if not is_up(urls[1], popen):
                raise SystemExit(f"the issuer does not start:\n{Path(folder, 'log').read_text()}")
            yield (*urls, popen.pid)
        finally:
            popen.send_signal(signal.SIGTERM)
            popen.wait(60)


def is_up(admin_url: str, popen: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and popen.poll() is None:
        try:
            if httpx.get(f"{admin_url}/health/ready", trust_env=False).status_code == 200:
                return True
        except httpx.HTTPError:
            time.sleep(0.05)
    return False


def register(admin_url: str) -> tuple[str, str]:
    """A fresh client: each round has its own, as one client may have so many live tokens only."""
    client_id, secret = f"did:fairlead:bench:{secrets.token_hex(8)}", secrets.token_urlsafe(32)
    body = {"client_id": client_id, "client_secret": secret, "scope": "agent:read agent:write"}
    httpx.post(f"{admin_url}/admin/clients", json=body, trust_env=False).raise_for_status()
    return client_id, secret


def load(url: str, form: dict[str, str], connections: int, seconds: int) -> dict[str, int]:
    """What wrk says of one round."""
    body = str(httpx.QueryParams(form))
    environment = {**os.environ, "LOAD_HEADERS": FORM, "LOAD_BODY": body}
    told = subprocess.run(
        ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", str(SCRIPT), url],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return dict(json.loads(told.stdout.strip().splitlines()[-1]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--alone", action="store_true")
    options = parser.parse_args()
    wrk_version()
    found: dict[str, list[tuple[float, int, int, float]]] = {name: [] for name in GOALS}
    with running(options.alone) as (url, admin_url, pid):
        for _ in range(options.rounds):
            client_id, secret = register(admin_url)
            ask = {
                "grant_type": "client_credentials", "client_id": client_id, "client_secret": secret,
                "scope": "agent:read",
            }  # fmt: skip
            first = httpx.post(f"{url}/oauth2/token", data=ask, trust_env=False).json()
            rounds = {
                "introspect": (
                    f"{admin_url}/admin/oauth2/introspect",
                    {"token": first["access_token"]},
                ),
                "token": (f"{url}/oauth2/token", ask),
            }
            for name, (target, form) in rounds.items():
                before = process.usage(pid)
                told = load(target, form, CONNECTIONS[name], options.seconds)
                spent_us = sum(process.usage(pid).since(before).values())
                rate = told["requests"] / (told["duration_us"] / 1_000_000)
                failed = told["refused"] + told["broken"]
                found[name].append((rate, told["p99_us"], failed, spent_us / told["requests"]))
    missed = False
    print(f"one-minute load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for name, samples in found.items():
        rate, p99_us = max(each[0] for each in samples), min(each[1] for each in samples)
        failed = sum(each[2] for each in samples)
        missed |= rate < GOALS[name] or p99_us > P99_GOAL_US or failed > 0
        cpu_us = min(each[3] for each in samples)
        every = ", ".join(f"{each[0]:.0f}/s p99 {each[1] / 1000:.1f} ms" for each in samples)
        print(f"{name}: best {rate:.0f}/s (goal {GOALS[name]}), best p99 {p99_us / 1000:.1f} ms "
              f"(goal {P99_GOAL_US / 1000:.0f}), {cpu_us:.0f} us of CPU each, {failed} failed  [{every}]")  # fmt: skip
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
