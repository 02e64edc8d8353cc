"""No spelling, name or answer of a resolver leads a webhook to where it must not go."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest

from fairlead.net import egress as egress_module
from fairlead.net.egress import AddressForbidden, Egress, NameUnknown
from fairlead.net.host import AddressRefused
from fairlead.webhooks.attempt import OutgoingMessage, attempt

pytestmark = pytest.mark.anyio

FORBIDDEN = [
    # Loopback in all spellings.
    "http://127.0.0.1/",
    "http://127.1/",
    "http://0/",
    "http://0x7f000001/",
    "http://2130706433/",
    "http://017700000001/",
    "http://127.0.0.1./",
    "http://[::1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://0x7f.1/",
    "http://127.0x0.1/",
    # Private, link-local, metadata, shared, reserved, multicast.
    "http://10.0.0.5/",
    "http://192.168.1.1/",
    "http://172.16.0.1/",
    "http://169.254.169.254/",
    "http://[fd00:ec2::254]/",
    "http://[fe80::1]/",
    "http://100.64.0.1/",
    "http://0.0.0.0/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://[ff02::1]/",
    "http://198.18.0.1/",
    "http://[fc00::1]/",
    "http://100.100.100.200/",
    "http://192.0.2.1/",
    # Other schemes and tricks of spelling.
    "file:///etc/passwd",
    "gopher://example.com/",
    "dict://example.com/",
    "ftp://example.com/",
    "data:text/plain,x",
    "jar:http://example.com!/",
    "unix:///run/x.sock",
    "//example.com/",
    "",
    "http:///",
    "http://",
    "http:/example.com",
    "example.com",
    "http://good@127.0.0.1/",
    "http://good:pw@example.com/",
    "http://example.com\\@127.0.0.1/",
    "http://exa mple.com/",
    "http://example.com/\t",
    "http://example.com/\n",
    "http://ex\u3002ample.com/",
    "http://\u2460\u2461\u2466.0.0.1/",
    "http://example.com/#x",
    "http://example.com:22/",
    "http://example.com:25/",
    "http://example.com:6379/",
    "http://example.com:0/",
    "http://example.com:99999/",
    "http://[example.com]/",
    "http://[127.0.0.1]/",
    "http://[::1%25lo]/",
    "http://example..com/",
    "http://256.1.1.1/",
    "http://1.2.3.4.5/",
    "http://0x/",
    "http://example.com/%zz",
    "http://example.com/<x>",
    f"http://e.com/{'x' * 2048}",
]


@pytest.mark.parametrize("url", FORBIDDEN)
def test_it_is_refused_when_it_is_given(url: str) -> None:
    with pytest.raises(AddressRefused):
        Egress().normalise_target(url)


@pytest.mark.parametrize("url", [url for url in FORBIDDEN if url.startswith("http://")])
async def test_and_never_dialled(url: str, monkeypatch) -> None:
    """Whatever got into the database: no connection is opened."""
    dialled = []

    async def dial(host, port, **_):
        dialled.append(host)
        raise ConnectionRefusedError

    monkeypatch.setattr(asyncio, "open_connection", dial)
    monkeypatch.setattr(socket, "getaddrinfo", resolver({"good": ["10.0.0.1"]}))
    outgoing = OutgoingMessage("msg_1", b"{}", url, ("whsec_" + "bmV3" * 8,))
    answer = await attempt(outgoing, Egress(), 0)
    assert answer.error == "address_refused"
    assert dialled == []


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("https://Example.COM", "https://example.com/"),
        ("https://example.com:443/a?b=c&d=%2f", "https://example.com/a?b=c&d=%2f"),
        ("http://example.com.:8080/a/", "http://example.com:8080/a/"),
        ("http://16843009/", "http://1.1.1.1/"),
        ("https://[2606:4700::1111]/", "https://[2606:4700::1111]/"),
    ],
)
def test_public_listeners_have_one_spelling(url: str, normal: str) -> None:
    assert Egress().normalise_target(url) == normal
    assert Egress().normalise_target(normal) == normal


def test_a_named_network_is_open_and_metadata_never() -> None:
    egress = Egress("10.0.0.0/8, 0.0.0.0/0, ::/0")
    assert egress.normalise_target("http://10.1.2.3/") == "http://10.1.2.3/"
    for host in ("169.254.169.254", "[fd00:ec2::254]", "0.0.0.0", "[fe80::1]", "224.0.0.1"):
        with pytest.raises(AddressRefused):
            egress.normalise_target(f"http://{host}/")


def resolver(names: dict[str, list[str]]):
    """Stands in for the system's resolver: each call of a name takes its next list."""

    def look_up(host, port, **_):
        addresses = names.get(host)
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return [
            (
                socket.AF_INET6 if ":" in one else socket.AF_INET,
                socket.SOCK_STREAM,
                6,
                "",
                (one, port),
            )
            for one in addresses
        ]

    return look_up


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["1.1.1.1", "127.0.0.1"],
        ["1.1.1.1", "::1"],
        ["fe80::1%lo"],
        ["x"],
        ["::ffff:10.0.0.1"],
        ["169.254.169.254"],
    ],
)
async def test_a_name_with_one_bad_address_is_bad(addresses, monkeypatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", resolver({"rebind.test": addresses}))
    with pytest.raises(AddressForbidden):
        await Egress().resolve("rebind.test", 80)
    with pytest.raises(AddressRefused):
        await Egress().check_target("http://rebind.test/")


async def test_what_was_judged_is_what_is_dialled(monkeypatch) -> None:
    """The name answers with a public address first and with loopback ever after."""
    answers = iter([["1.1.1.1"]])

    def rebinding(host, port, **_):
        return resolver({host: next(answers, ["127.0.0.1"])})(host, port)

    dialled = []

    async def dial(host, port, **tls):
        dialled.append((host, port, tls.get("server_hostname")))
        return None, None

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    monkeypatch.setattr(asyncio, "open_connection", dial)
    egress = Egress()
    await egress.connect("https://rebind.test/x")
    with pytest.raises(AddressForbidden):
        await egress.connect("https://rebind.test/x")
    assert dialled == [("1.1.1.1", 443, "rebind.test")]


async def test_a_resolver_that_fails_is_a_refusal(monkeypatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", resolver({}))
    with pytest.raises(NameUnknown):
        await Egress().resolve("nowhere.test", 80)
    answer = await attempt(
        OutgoingMessage("msg_1", b"{}", "http://nowhere.test/", ("whsec_" + "bmV3" * 8,)),
        Egress(),
        0,
    )
    assert answer.error == "name_unknown"


async def test_a_resolver_that_hangs_holds_up_no_other_name(monkeypatch) -> None:
    release = threading.Event()
    calls = []

    def hanging(host, port, **_):
        calls.append(host)
        if host == "slow.test":
            release.wait(20)
        return resolver({host: ["1.1.1.1"]})(host, port)

    monkeypatch.setattr(socket, "getaddrinfo", hanging)
    egress = Egress()
    waiting = [asyncio.create_task(egress.resolve("slow.test", 80)) for _ in range(50)]
    try:
        await asyncio.sleep(0)
        async with asyncio.timeout(5):
            assert await egress.resolve("fast.test", 80) == ["1.1.1.1"]
        # All who ask for the slow one wait for one look-up, and giving up takes it from nobody.
        waiting[0].cancel()
        assert calls.count("slow.test") == 1
    finally:
        release.set()
    answers = await asyncio.gather(*waiting[1:])
    assert answers == [["1.1.1.1"]] * 49
    egress.close()


async def test_lookups_at_once_are_bounded(monkeypatch) -> None:
    monkeypatch.setattr(egress_module, "LOOKUPS_MAX", 2)
    release = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: release.wait(20) and [])
    egress = Egress()
    waiting = [asyncio.create_task(egress.resolve(f"s{n}.test", 80)) for n in range(2)]
    try:
        await asyncio.sleep(0)
        with pytest.raises(NameUnknown):
            await egress.resolve("s3.test", 80)
    finally:
        release.set()
    await asyncio.gather(*waiting, return_exceptions=True)
    egress.close()
