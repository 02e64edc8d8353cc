"""In a network of our own, where every forbidden address has a listener: none may get a single connection."""

from __future__ import annotations

import json

from tests.support.namespace import needs_namespace, run_in_namespace

PROGRAM = """
import asyncio, json, socket, sys

from fairlead.net.egress import Egress
from fairlead.webhooks import attempt as sending
from fairlead.webhooks.attempt import OutgoingMessage, attempt

SECRETS = ("whsec_" + "bmV3" * 8,)
NAMES = {
    "loop.test": ["127.0.0.1"], "private.test": ["10.0.0.5"], "meta.test": ["169.254.169.254"],
    "mixed.test": ["8.8.8.8", "10.0.0.5"], "six.test": ["::1"], "mapped.test": ["::ffff:10.0.0.5"],
}
real = socket.getaddrinfo
def look_up(host, port, *rest, **more):
    if host in NAMES:
        return [found for one in NAMES[host] for found in real(one, port, *rest, **more)]
    if host.endswith(".test"):
        raise socket.gaierror
    return real(host, port, *rest, **more)
socket.getaddrinfo = look_up

seen = []
async def accept(reader, writer):
    seen.append(writer.get_extra_info("sockname")[0])
    await reader.read(65536)
    writer.write(b"HTTP/1.1 302 Found\\r\\nlocation: http://169.254.169.254/\\r\\ncontent-length: 0\\r\\n\\r\\n")
    await writer.drain()
    writer.close()

async def main():
    sending.DEADLINE_S = 5.0
    for family, host in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        listener = socket.socket(family)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((host, 80))
        await asyncio.start_server(accept, sock=listener)
    async def send(url, networks=""):
        answer = await attempt(OutgoingMessage("msg_1", b"{}", url, SECRETS), Egress(networks), 0)
        return [url, networks, answer.error, answer.status]
    outcomes = [await send(f"http://{host}/") for host in json.loads(sys.argv[1]) + list(NAMES)]
    before = list(seen)
    opened = [
        await send("http://10.0.0.5/", "10.0.0.0/8"),
        await send("http://private.test/", "10.0.0.0/8"),
        await send("http://169.254.169.254/", "0.0.0.0/0"),
        await send("http://meta.test/", "0.0.0.0/0"),
    ]
    print(json.dumps({"outcomes": outcomes, "before": before, "opened": opened, "seen": seen}))

asyncio.run(main())
"""

HOSTS = [
    "127.0.0.1",
    "127.1",
    "0",
    "0x7f000001",
    "2130706433",
    "017700000001",
    "127.0.0.1.",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "10.0.0.5",
    "167772165",
    "[::ffff:10.0.0.5]",
    "169.254.169.254",
    "0xa9fea9fe",
    "[::ffff:a9fe:a9fe]",
    "0.0.0.0",
    "[::]",
    "localhost",
    "good@10.0.0.5",
    "10.0.0.5\\@good",
]


@needs_namespace
def test_no_forbidden_listener_sees_a_connection() -> None:
    addresses = ("10.0.0.5", "169.254.169.254")
    report = run_in_namespace(addresses, PROGRAM, json.dumps(HOSTS), timeout_s=60)
    assert {outcome[2] for outcome in report["outcomes"]} == {"address_refused"}
    assert report["before"] == []
    # The listeners are there: an opened network is reached, without its redirect, and metadata is not.
    assert [one[2:] for one in report["opened"]] == [
        ["redirect", 302],
        ["redirect", 302],
        ["address_refused", None],
        ["address_refused", None],
    ]
    assert report["seen"] == ["10.0.0.5", "10.0.0.5"]
