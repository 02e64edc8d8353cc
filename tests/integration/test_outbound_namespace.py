"""A gateway in a network of its own, whose one link leads to proxies and a provider: with a proxy set, no
packet on that link goes
anywhere but to the proxy, and nobody asks for a name.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.namespace import namespace_works

pytestmark = pytest.mark.slow

PROGRAM = """
import json, socket, struct, subprocess, sys, threading, time
from pathlib import Path

from tests.support.far_side import CONNECT_PORT, FAR, NAME, NEAR, PORT, PROVIDER, SOCKS_PORT
from tests.support.processes import expect, start_gateway

folder = Path(sys.argv[1])
far = subprocess.Popen(
    ["unshare", "-nm", sys.executable, "-m", "tests.support.far_side", str(folder)],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
)
def run(*command):
    subprocess.run(command, check=True)
run("ip", "link", "set", "lo", "up")
deadline = time.monotonic() + 10
# The link's other end is given away once that process has its own network.
while Path(f"/proc/{far.pid}/ns/net").readlink() == Path("/proc/self/ns/net").readlink():
    assert time.monotonic() < deadline
    time.sleep(0.02)
run("ip", "link", "add", "near0", "type", "veth", "peer", "name", "far0", "netns", str(far.pid))
run("ip", "addr", "add", f"{NEAR}/24", "dev", "near0")
run("ip", "link", "set", "near0", "up")
# Whatever leaves directly finds its way, names too.
run("ip", "route", "add", "default", "via", FAR)
(folder / "resolv.conf").write_text(f"nameserver {FAR}\\noptions timeout:1 attempts:1\\n")
(folder / "near-hosts").write_text("127.0.0.1 localhost\\n")
run("mount", "--bind", str(folder / "resolv.conf"), "/etc/resolv.conf")
run("mount", "--bind", str(folder / "near-hosts"), "/etc/hosts")
def say(line):
    far.stdin.write(line + "\\n")
    far.stdin.flush()
say("the link is there")

sent = []
wire = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
wire.bind(("near0", 3))
def listen():
    while True:
        packet, (_, protocol, kind, *_) = wire.recvfrom(65535)
        if kind != socket.PACKET_OUTGOING or protocol != 0x0800:
            continue
        size = (packet[0] & 15) * 4
        (port,) = struct.unpack("!H", packet[size + 2:size + 4])
        name = {6: "tcp", 17: "udp"}.get(packet[9], str(packet[9]))
        sent.append((name, socket.inet_ntoa(packet[16:20]), port))
threading.Thread(target=listen, daemon=True).start()

def callers(line="who"):
    say(line)
    return json.loads(far.stdout.readline())
callers()

def observe(work):
    time.sleep(0.2)
    sent.clear()
    callers()
    told = work()
    time.sleep(0.3)
    return {"told": told, "sent": sorted(set(sent)), "callers": sorted(set(callers()))}

report = {}
with start_gateway(folder, FAIRLEAD_LOG_LEVEL="warning") as gateway:
    lanes = {}
    for host in (NAME, PROVIDER):
        prefix = "n" + str(len(lanes))
        node = gateway.add_node(prefix, f"http://{host}:{PORT}/v1", connectMs=3000, headerMs=8000)
        lanes[host] = prefix, gateway.add_connection(node["id"], f"sk-namespace-canary-{prefix}")["id"]
    key = gateway.create_key()["key"]
    body = {"messages": [{"role": "user", "content": "hi"}]}

    def calls():
        # The relay's call, and control's own.
        told = []
        for prefix, connection in lanes.values():
            answer = gateway.caller.post(
                "/v1/chat/completions", json={**body, "model": f"{prefix}/m"},
                headers={"authorization": f"Bearer {key}"},
            )
            test = expect(gateway.admin.post(f"/api/providers/{connection}/test"), 200)
            told.append([answer.status_code, answer.json().get("error", {}).get("code"), test["diagnosis"]["type"]])
        return told

    def through(proxy):
        expect(gateway.admin.put("/api/settings/proxy", json={"proxy": proxy}), 200)
    through({"type": "http", "host": FAR, "port": CONNECT_PORT})
    report["http"] = observe(calls)
    through({"type": "socks5", "host": FAR, "port": SOCKS_PORT})
    report["socks5"] = observe(calls)
    callers("stop proxies")
    report["socks5 down"] = observe(calls)
    through({"type": "http", "host": FAR, "port": CONNECT_PORT})
    report["http down"] = observe(calls)
    through(None)
    report["direct"] = observe(calls)
far.stdin.close()
far.wait(10)
print(json.dumps(report))
"""


def missing() -> str | None:
    """Why this cannot be run here."""
    if not namespace_works():
        return "needs unshare with a user namespace, and ip"
    gone = [each for each in ("tinyproxy", "microsocks", "mount") if shutil.which(each) is None]
    return f"{', '.join(gone)} not installed" if gone else None


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Any:
    if (reason := missing()) is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("network")
    ended = subprocess.run(
        ["unshare", "-rnm", "--propagation", "private", sys.executable, "-c", PROGRAM, str(folder)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=480,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    return json.loads(ended.stdout.splitlines()[-1])


PORTS = {"http": 8888, "socks5": 1080}


@pytest.mark.parametrize("kind", ["http", "socks5"])
def test_with_a_proxy_every_packet_goes_to_it(report: Any, kind: str) -> None:
    """By a name that the gateway cannot resolve and by an address that it could reach, of the relay and of control."""
    told = report[kind]
    assert told["told"] == [[200, None, "ok"]] * 2
    assert told["sent"] == [["tcp", "10.9.0.2", PORTS[kind]]]
    # The provider sees its own network only.
    assert "10.9.0.1" not in told["callers"]
    assert told["callers"]


@pytest.mark.parametrize("kind", ["http", "socks5"])
def test_nothing_goes_past_a_proxy_that_is_gone(report: Any, kind: str) -> None:
    told = report[f"{kind} down"]
    assert told["told"] == [[502, "proxy_failed", "proxy"]] * 2
    assert told["sent"] == [["tcp", "10.9.0.2", PORTS[kind]]]
    assert told["callers"] == []


def test_the_link_shows_direct_packets_where_there_are_any(report: Any) -> None:
    """What the other tests rely on: without a proxy names are asked for and the provider is called directly."""
    told = report["direct"]
    assert ["udp", "10.9.0.2", 53] in told["sent"]
    assert ["tcp", "203.0.113.9", 8000] in told["sent"]
    assert told["callers"] == ["10.9.0.1"]
    assert told["told"][1] == [200, None, "ok"]
