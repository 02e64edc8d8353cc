"""Both fronts answer alike: every kind of response, byte for byte except dates, ids and timestamps.

One data directory, one provider, one port: first with one front, then with the other.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.fronts import Observation, RawRequest, difference, observe, requests_of
from tests.support.polling import eventually
from tests.support.processes import FRONTS, Gateway, expect, start_gateway
from tests.support.upstream import (
    CLOSE,
    DONE,
    RESET,
    SSE_HEAD,
    Script,
    Upstream,
    chunk,
    delta,
    finish,
    reply,
    stream,
    usage_event,
)

SCRIPTS: dict[str, Script] = {
    "an answer of another type": reply(b"<html>", content_type="text/html"),
    "a provider's refusal": reply({"error": {"message": "no", "type": "x"}}, 400),
    "a provider that limits": reply({"error": {}}, 429, [("Retry-After", "7")]),
    "a provider's failure": reply({"error": {}}, 500),
    "a provider that hangs up": [RESET],
    "a stream that breaks": [SSE_HEAD, chunk(delta("half")), CLOSE],
}
# Where the fronts may differ, and why.
KNOWN = {
    "absolute form, another host": "granian tells an application the target's path alone, so two hosts "
    "that disagree (RFC 9112, 3.2.2) are seen and refused by the engine's own listener only",
    "a target of 64 kB": "granian's HTTP library refuses it without a word; the engine says what is too long",
    "length and chunks": "granian's HTTP library drops the length, so the application cannot see that there "
    "were two framings (RFC 9112, 6.1); the engine refuses them whoever requests",
}


@pytest.fixture(scope="module")
def observed(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, dict[str, Observation]]]:
    """The observations, by front."""
    folder = tmp_path_factory.mktemp("fronts")
    with Upstream() as upstream, start_gateway(folder, FAIRLEAD_FRONT=FRONTS[0]) as gateway:
        lane, streams = gateway.add_lane(upstream), gateway.add_lane(upstream)
        flow = stream(delta("he"), delta("llo"), finish(), usage_event(), DONE)
        upstream.script(flow, key=streams.secrets[0])
        failing = {}
        for what, script in SCRIPTS.items():
            # Lanes of their own: a provider that fails is left alone for a while, and that is told.
            failing[what] = gateway.add_lane(upstream), gateway.add_lane(upstream)
            for own in failing[what]:
                upstream.script(script, key=own.secrets[0])
        requests = requests_of(gateway, lane, streams, failing)
        # When the key was last used is told in its record, which has another length without.
        expect(gateway.caller.post("/v1/chat/completions", json=lane.body()), 200)
        eventually(lambda: last_use(gateway), "its use is known", within_s=20)
        found = {FRONTS[0]: observe_all(gateway, requests)}
        gateway.stop()
        gateway.front = FRONTS[1]
        gateway.start()
        found[FRONTS[1]] = observe_all(gateway, requests)
        gateway.assert_keeps_secrets()
        yield found


def last_use(gateway: Gateway) -> str | None:
    (key,) = expect(gateway.admin.get("/api/keys"), 200)["keys"]
    found: str | None = key["lastUsedAt"]
    return found


def observe_all(gateway: Gateway, requests: dict[str, RawRequest]) -> dict[str, Observation]:
    return {name: observe(gateway.port, request) for name, request in requests.items()}


def test_both_fronts_were_asked(observed: dict[str, dict[str, Observation]]) -> None:
    """The comparison covers responses of many kinds, and each front did answer."""
    one, other = (observed[front] for front in FRONTS)
    assert len(one) == len(other) > 150
    for found in (one, other):
        statuses = {answer.status.split(" ")[0] for answer in found.values()}
        assert statuses >= {"200", "400", "401", "404", "405", "413", "415", "429", "431", "502"}
        assert found["a stream"].body.endswith(DONE)
        assert found["a plain answer"].stays


def test_both_fronts_answer_alike(observed: dict[str, dict[str, Observation]]) -> None:
    one, other = (observed[front] for front in FRONTS)
    differences = {
        name: found
        for name in one
        if name not in KNOWN and (found := difference(one[name], other[name]))
    }
    told = [f"{name}: {part}" for name, parts in differences.items() for part in parts]
    assert not told, f"{' | '.join(FRONTS)}\n" + "\n".join(told)


def test_known_differences_are_there(observed: dict[str, dict[str, Observation]]) -> None:
    """What differs for a reason still does: an entry that is no longer true is taken out."""
    one, other = (observed[front] for front in FRONTS)
    assert [name for name in KNOWN if one[name] == other[name]] == []
