"""`--demo`: the stand-in provider with a node and a connection, ready for calls."""

from __future__ import annotations

import asyncio
import json
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx

from fairlead.serve.child import Child
from fairlead.serve.environment import child_environment
from fairlead.serve.failure import StartFailed
from fairlead.serve.log import LogSink
from fairlead.serve.port import free_port

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from fairlead.serve.demo_traffic import DemoTarget

PREFIX: Final = "demo"
# The providers of the made-up traffic; all of them are the stand-in.
PROVIDER_NAMES: Final = {
    "demo-east": "Demo East",
    "demo-west": "Demo West",
    "demo-spare": "Demo Spare",
}
_KEY_NAME: Final = "demo"
_UP_WITHIN_S: Final = 30.0
CALL_WITHIN_S = 30.0
"""How long a call of the instance may take. A slow machine takes seconds for the first ones."""


class Demo:
    """The stand-in's child process and its registration as the model `demo/standin`.

    Registration is idempotent: a second start finds its node and only updates the port.
    """

    def __init__(self, url: str, local_token: str, asks_for_keys: bool, log: LogSink) -> None:
        self._url = url
        self._local_token = local_token
        self._asks_for_keys = asks_for_keys
        self._standin = f"http://127.0.0.1:{(port := free_port())}"
        arguments = ["--host", "127.0.0.1", "--port", str(port)]
        self.child = Child("standin", arguments, child_environment(), log)

    async def set_up(self, new_data_dir: Path | None = None) -> str:
        """Waits for the stand-in, registers it, and returns a shell command that calls it. The data
        directory of a new instance gets made-up traffic too.
        """
        headers = {"x-gateway-cli-token": self._local_token}
        # Our own instance over loopback: there is no name to verify and no proxy to use.
        async with httpx.AsyncClient(
            base_url=self._url,
            headers=headers,
            verify=False,  # noqa: S501
            trust_env=False,
            timeout=CALL_WITHIN_S,
        ) as api:
            await self._until_up()
            await self._register(api)
            key = await self._fresh_key(api) if self._asks_for_keys else None
            if new_data_dir is not None:
                await self._fill(api, new_data_dir)
        return self._curl(key)

    async def _until_up(self) -> None:
        deadline_s = asyncio.get_running_loop().time() + _UP_WITHIN_S
        async with httpx.AsyncClient(trust_env=False, timeout=1) as client:
            while asyncio.get_running_loop().time() < deadline_s and not self.child.exited.is_set():
                try:
                    if (await client.get(f"{self._standin}/health")).is_success:
                        return
                except httpx.TransportError:
                    await asyncio.sleep(0.05)
        raise StartFailed("the stand-in provider did not come up.")

    async def _register(self, api: httpx.AsyncClient) -> None:
        connection_id = await self._register_node(api, PREFIX, "Demo")
        await self._register_search(api)
        # The connection test lists the stand-in's models, which adds them to the list of models.
        await _sent(api.post(f"/api/providers/{connection_id}/test"))
        nodes = await _all(api, "/api/provider-nodes", "nodes")
        for prefix in {node["prefix"] for node in nodes} & set(PROVIDER_NAMES):
            await self._register_node(api, prefix, PROVIDER_NAMES[prefix])

    async def _register_node(self, api: httpx.AsyncClient, prefix: str, name: str) -> str:
        """Creates the node and its connection unless they exist; returns the connection's id."""
        base_url = f"{self._standin}/v1"
        nodes = await _all(api, "/api/provider-nodes", "nodes")
        node = next((node for node in nodes if node["prefix"] == prefix), None)
        if node is None:
            body = {
                "type": "openai-compatible",
                "name": name,
                "prefix": prefix,
                "baseUrl": base_url,
            }
            node = (await _sent(api.post("/api/provider-nodes", json=body)))["node"]
        elif node["baseUrl"] != base_url:
            await _sent(api.put(f"/api/provider-nodes/{node['id']}", json={"baseUrl": base_url}))
        connections = await _all(api, "/api/providers", "connections")
        connection = next((one for one in connections if one["provider"] == node["id"]), None)
        if connection is None:
            body = {"provider": node["id"], "name": name}
            connection = (await _sent(api.post("/api/providers", json=body)))["connection"]
        return str(connection["id"])

    async def _fill(self, api: httpx.AsyncClient, data_dir: Path) -> None:
        """Makes the providers, the combo and the keys of the made-up applications, and their traffic of the last
        weeks.
        """
        from fairlead.serve.demo_traffic import (
            APPLICATIONS,
            COMBO,
            COMBO_MODELS,
            KEY_PREFIX,
            MODELS,
            Owners,
            monthly_limits,
            write_traffic,
        )

        now = datetime.now(UTC)
        for prefix, name in PROVIDER_NAMES.items():
            await self._register_node(api, prefix, name)
        targets = await _read_targets(api)
        prices = {
            place.node_id: {
                model.name: {"input": model.price_in / 1000, "output": model.price_out / 1000}
                for model in MODELS.values()
                if model.provider == prefix
            }
            for prefix, place in targets.items()
        }
        await _sent(api.patch("/api/pricing", json=prices))
        combo = {"name": COMBO, "strategy": "priority", "models": list(COMBO_MODELS)}
        await _sent(api.post("/api/combos", json=combo))
        limits = await asyncio.to_thread(monthly_limits, now)
        key_ids = {}
        for app in APPLICATIONS:
            limit = limits.get(app.name)
            body = {
                "name": f"{KEY_PREFIX}{app.name}",
                "usageLimitEnabled": limit is not None,
                "monthlyUsageLimitUsd": limit,
            }
            key_ids[app.name] = (await _sent(api.post("/api/keys", json=body)))["id"]
        await asyncio.to_thread(write_traffic, data_dir, Owners(key_ids, targets), now)

    async def _register_search(self, api: httpx.AsyncClient) -> None:
        """Registers the stand-in's search API as a search provider."""
        found = (await _sent(api.get("/api/search-providers")))["providers"]
        engine = next((one for one in found if one["name"] == PREFIX), None)
        if engine is None:
            body = {"name": PREFIX, "kind": "searxng", "baseUrl": self._standin}
            await _sent(api.post("/api/search-providers", json=body))
        elif engine["baseUrl"] != self._standin:
            path = f"/api/search-providers/{engine['id']}"
            await _sent(api.patch(path, json={"baseUrl": self._standin}))

    async def _fresh_key(self, api: httpx.AsyncClient) -> str:
        """Creates the demo's API key again at each start, because a key's text is shown only once."""
        for key in await _all(api, "/api/keys", "keys"):
            if key["name"] == _KEY_NAME:
                await _sent(api.delete(f"/api/keys/{key['id']}"))
        return str((await _sent(api.post("/api/keys", json={"name": _KEY_NAME})))["key"])

    def _curl(self, key: str | None) -> str:
        message = {"role": "user", "content": "Hello!"}
        body = json.dumps({"model": f"{PREFIX}/standin", "messages": [message]})
        words = ["curl", f"{self._url}/v1/chat/completions", "-H", "content-type: application/json"]
        if key is not None:
            words += ["-H", f"authorization: Bearer {key}"]
        return shlex.join([*words, "-d", body])


async def _read_targets(api: httpx.AsyncClient) -> dict[str, DemoTarget]:
    """The nodes and connections of the demo's providers, by prefix."""
    from fairlead.serve.demo_traffic import DemoTarget

    nodes = await _all(api, "/api/provider-nodes", "nodes")
    connections = await _all(api, "/api/providers", "connections")
    by_provider = {each["provider"]: each["id"] for each in connections}
    return {
        node["prefix"]: DemoTarget(node["id"], by_provider[node["id"]])
        for node in nodes
        if node["prefix"] in PROVIDER_NAMES
    }


async def _all(api: httpx.AsyncClient, path: str, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while True:
        page = await _sent(api.get(path, params={"limit": 500, "offset": len(found)}))
        found += page[name]
        if not page[name] or len(found) >= page["total"]:
            return found


async def _sent(call: Coroutine[Any, Any, httpx.Response]) -> dict[str, Any]:
    try:
        answer = await call
    except httpx.TimeoutException as error:
        raise StartFailed(
            f"the demo was not set up: {_route(error)} was not answered within {CALL_WITHIN_S:g} s. Start again; "
            "what was made is used."
        ) from error
    except httpx.HTTPError as error:
        raise StartFailed(
            f"the demo was not set up: {_route(error)} was not answered ({type(error).__name__})."
        ) from error
    if not answer.is_success:
        route = f"{answer.request.method} {answer.request.url.path}"
        raise StartFailed(f"the demo was not set up: {route} was answered {answer.status_code}.")
    return dict(answer.json())


def _route(error: httpx.HTTPError) -> str:
    return f"{error.request.method} {error.request.url.path}"
