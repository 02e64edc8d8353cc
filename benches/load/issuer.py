"""Measures the token issuer inside control: introspections and tokens a second, and their p99.

    python benches/load/issuer.py [--rounds N] [--seconds N] [--alone] [--quick]

One gateway as an operator starts it, with `ISSUER__ENABLED=true`: the one control worker answers, at the
niceness that control has. `--alone` measures `fairlead issuer` instead. Rounds take turns; the best round
is what the machine can do, the others say how quiet it was. The figures go into `benches/results` (not those of
`--quick`, one short round). Exit code 1 when the best misses a goal.
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
from figures import Figure, Round, keep, page
from measure import SCRIPT, wrk_version
from run import machine

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
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(told.stdout.strip().splitlines()[-1]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument(
        "--quick", action="store_true", help="one short round, nothing kept: a trial"
    )
    options = parser.parse_args()
    wrk_version()
    rounds_wanted, seconds = (1, 1) if options.quick else (options.rounds, options.seconds)
    found = {name: Figure(name, goal, P99_GOAL_US) for name, goal in GOALS.items()}
    with running(options.alone) as (url, admin_url, pid):
        for _ in range(rounds_wanted):
            client_id, secret = register(admin_url)
            ask = {
                "grant_type": "client_credentials",
                "client_id": client_id,
                "client_secret": secret,
                "scope": "agent:read",
            }
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
                told = load(target, form, CONNECTIONS[name], seconds)
                spent_us = sum(process.usage(pid).since(before).values())
                rate = told["requests"] / (told["duration_us"] / 1_000_000)
                failed = told["refused"] + told["broken"]
                found[name].rounds.append(
                    Round(rate, told["p99_us"], failed, spent_us / told["requests"])
                )
    figures = list(found.values())
    where = "in a process of its own" if options.alone else "inside the one control worker"
    name, title = ("issuer-alone" if options.alone else "issuer"), f"The token issuer, {where}"
    conditions = (
        f"{rounds_wanted} rounds of {seconds} s, {wrk_version()}, one thread, connections: "
        + ", ".join(f"{what} {count}" for what, count in CONNECTIONS.items())
        + "."
    )
    print(page(title, machine(), conditions, figures))
    if not options.quick:
        print(f"kept as {keep(name, title, machine(), conditions, figures)}")
    return int(not all(figure.is_met for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
