"""H8: there is one spelling of every path. No other one reaches anything that a credential guards.

The product of all routes and all mutations is generated from the route table, so a route that is added later is
tested without anybody thinking of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from fairlead import _core
from tests.support.processes import Gateway
from tests.support.raw import Closed, RawClient

Mutation = Callable[[str], str]


def last_slash(mark: str) -> Mutation:
    return lambda path: (
        mark.join(path.rsplit("/", 1)) if path.count("/") > 1 else path.replace("/", f"/{mark}", 1)
    )


MUTATIONS: dict[str, Mutation] = {
    "as it is": lambda path: path,
    "upper case": str.upper,
    "capitalised": lambda path: "/" + path[1:].capitalize(),
    "two slashes in front": lambda path: "/" + path,
    "three slashes in front": lambda path: "//" + path,
    "two slashes inside": last_slash("//"),
    "a dot inside": last_slash("/./"),
    "a dot in front": lambda path: "/." + path,
    "there and back": last_slash("/x/../"),
    "from a public path": lambda path: "/healthz/.." + path,
    "from sign-in": lambda path: "/api/auth/login/../../.." + path,
    "from a public path, encoded": lambda path: "/healthz/%2e%2e" + path,
    "from a public path, all encoded": lambda path: "/healthz%2f.." + path,
    "above the root": lambda path: "/.." + path,
    "an encoded slash": last_slash("%2f"),
    "an encoded slash, upper case": last_slash("%2F"),
    "an encoded slash, twice": last_slash("%252f"),
    "an encoded letter": lambda path: path[:-1] + f"%{ord(path[-1]):02x}",
    "a first letter encoded": lambda path: f"/%{ord(path[1]):02x}" + path[2:],
    "encoded dots": last_slash("/%2e/"),
    "a parameter": lambda path: path + ";x=y",
    "a parameter inside": last_slash(";x/"),
    "a public parameter": lambda path: path + ";/healthz",
    "a slash behind": lambda path: path + "/",
    "two slashes behind": lambda path: path + "//",
    "a dot behind": lambda path: path + "/.",
    "dots behind": lambda path: path + "/..",
    "an extension": lambda path: path + ".json",
    "an encoded NUL": lambda path: path + "%00",
    "an encoded NUL and a public end": lambda path: path + "%00/healthz",
    "an encoded space": lambda path: path + "%20",
    "an encoded tab": lambda path: path + "%09",
    "an encoded line end": lambda path: path + "%0d%0a",
    "an encoded question mark": lambda path: path + "%3f",
    "an encoded hash": lambda path: path + "%23",
    "a backslash": last_slash("\\"),
    "an encoded backslash": last_slash("%5c"),
    "an overlong slash": last_slash("%c0%af"),
    "a wide slash": last_slash("%ef%bc%8f"),
    "broken encoding": lambda path: path + "%zz",
    "half an encoding": lambda path: path + "%2",
    "a fragment": lambda path: path + "#/healthz",
    "a query": lambda path: path + "?x=/healthz",
    "absolute form": lambda path: f"http://localhost{path}",
    "absolute form of another host": lambda path: f"http://evil.example{path}",
    "no slash in front": lambda path: path[1:],
}
# The path of these is the route's own: the server takes off a fragment, and the origin of an absolute form. The
# engine's own listener compares that origin with `Host`, which granian does not tell.
SAME_PATH = {"as it is", "a query", "a fragment", "absolute form", "absolute form of another host"}


def routes(tier: str) -> list[tuple[str, str]]:
    """Method and an example path of every route of the tier."""
    example = "00000000-0000-4000-8000-000000000000"
    return [
        (route["method"], route["path"].replace("{*id}", "a/b").replace("{id}", example))
        for route in _core.routes()
        if route["tier"] == tier
    ]


def statuses(
    gateway: Gateway, guarded: list[tuple[str, str]], header: str
) -> Iterator[tuple[str, str, str, int | None]]:
    """The status of each request of the product, or None where the connection ended instead."""
    client = RawClient(gateway.port)
    for method, path in guarded:
        body = "{}" if method in {"POST", "PUT", "PATCH"} else ""
        framing = (
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
        )
        for name, mutate in MUTATIONS.items():
            target = mutate(path)
            client.send(
                f"{method} {target} HTTP/1.1\r\nHost: localhost\r\n{header}{framing}\r\n{body}".encode()
            )
            try:
                status = client.response().status
            except Closed:
                status = None
            if status in {None, 400, 414}:  # the server may have ended the connection
                client.close()
                client = RawClient(gateway.port)
            yield method, target, name, status
    client.close()


@pytest.mark.parametrize(
    "tier", sorted({route["tier"] for route in _core.routes()} - {"public", "delegated"})
)
def test_without_a_credential_no_spelling_opens_a_route(gateway: Gateway, tier: str) -> None:
    """Every spelling of every guarded path is refused as the caller's fault: never 2xx, never 5xx."""
    wrong = [
        found
        for found in statuses(gateway, routes(tier), "")
        if found[3] is not None and not 400 <= found[3] < 500
    ]
    assert wrong == []


def test_a_key_of_inference_opens_no_management(gateway: Gateway) -> None:
    """An ordinary key is refused in every spelling of every management path, and only by 401, 403, 400 or 404."""
    key = gateway.create_key(name="ordinary")["key"]
    header = f"Authorization: Bearer {key}\r\n"
    wrong = [
        found
        for found in statuses(gateway, routes("management"), header)
        if found[3] not in {None, 400, 401, 403, 404, 405, 414}
    ]
    assert wrong == []


def test_only_the_exact_spelling_is_served(gateway: Gateway) -> None:
    """The local token may do everything, but other spellings of a path are 400 or 404: there is no second name."""
    header = f"X-Gateway-Cli-Token: {gateway.cli_token}\r\n"
    lists = [
        ("GET", "/api/keys"),
        ("GET", "/api/providers"),
        ("GET", "/v1/models"),
        ("GET", "/api/settings"),
    ]
    wrong = []
    for method, target, name, status in statuses(gateway, lists, header):
        is_same = name in SAME_PATH
        if gateway.front == "native" and name == "absolute form of another host":
            is_same = False
        expected = {200} if is_same else {None, 400, 404, 405, 414}
        if status not in expected:
            wrong.append((method, target, name, status))
    assert wrong == []
