"""The A2A project's own Python client against an agent: it reads the card, sends, asks and cancels."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import httpx
import pytest

from tests.support.agents import make_agent
from tests.support.processes import Gateway, Lane
from tests.support.upstream import Gate, Upstream, completion, reply

client = pytest.importorskip("a2a.client", reason="a2a-sdk is not installed")
errors = pytest.importorskip("a2a.client.errors")
types = pytest.importorskip("a2a.types")


@pytest.mark.one_node(reason="behind a proxy an agent that protects itself by nothing is closed")
def test_the_official_client_talks_with_an_agent(
    gateway: Gateway, lane: Lane, upstream: Upstream
) -> None:
    base = f"{gateway.url}{make_agent(gateway, lane.model)['path']}"

    def message(text: str, context_id: str | None = None) -> object:
        part = types.Part(root=types.TextPart(text=text))
        return types.Message(
            role=types.Role.user, message_id=str(uuid4()), parts=[part], context_id=context_id
        )

    async def talk() -> None:
        async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
            card = await client.A2ACardResolver(http, base).get_agent_card()
            assert card.url == base
            config = client.ClientConfig(httpx_client=http, streaming=False)
            agent = client.ClientFactory(config).create(card)
            [(task, _)] = [event async for event in agent.send_message(message("hello"))]
            assert task.status.state == types.TaskState.completed
            told = completion()["choices"][0]["message"]["content"]
            assert task.artifacts[0].parts[0].root.text == told
            found = await agent.get_task(types.TaskQueryParams(id=task.id, history_length=1))
            assert [each.role for each in found.history] == [types.Role.agent]
            with pytest.raises(errors.A2AClientJSONRPCError) as refused:
                await agent.cancel_task(types.TaskIdParams(id=task.id))
            assert refused.value.error.code == -32002
            await cancel_one(http, card, task.context_id)
            await follow_one(http, card)

    async def cancel_one(http: httpx.AsyncClient, card: object, context_id: str) -> None:
        gate = Gate()
        upstream.script([gate, *reply(completion())], model="m")
        try:
            config = client.ClientConfig(httpx_client=http, streaming=False, polling=True)
            agent = client.ClientFactory(config).create(card)
            events = agent.send_message(message("again", context_id))
            [(task, _)] = [event async for event in events]
            assert task.status.state in (types.TaskState.submitted, types.TaskState.working)
            ended = await agent.cancel_task(types.TaskIdParams(id=task.id))
            assert ended.status.state == types.TaskState.canceled
        finally:
            gate.open()

    async def follow_one(http: httpx.AsyncClient, card: object) -> None:
        config = client.ClientConfig(httpx_client=http)
        agent = client.ClientFactory(config).create(card)
        events = [event async for event in agent.send_message(message("once more"))]
        task, last = events[-1]
        assert task.status.state == types.TaskState.completed
        assert last is not None
        assert last.final
        assert task.artifacts

    asyncio.run(talk())
