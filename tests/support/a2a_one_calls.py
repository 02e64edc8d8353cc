"""The A2A project's client of version 1, unchanged, against an agent. Prints what it returned as one JSON object.

Runs in the environment of `make .venv/.stamp-clients`: the tests' own has the client of version 0.3.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from typing import Any
from uuid import uuid4

import httpx

# The type checker would read the modules of version 0.3.
client: Any = importlib.import_module("a2a.client")
types: Any = importlib.import_module("a2a.types.a2a_pb2")
as_dict: Any = importlib.import_module("google.protobuf.json_format").MessageToDict


def request(text: str, *, returns_immediately: bool = False) -> Any:
    part = types.Part(text=text)
    message = types.Message(message_id=str(uuid4()), role=types.ROLE_USER, parts=[part])
    options = types.SendMessageConfiguration(return_immediately=returns_immediately)
    return types.SendMessageRequest(message=message, configuration=options)


async def main(base: str) -> dict[str, Any]:
    returned: dict[str, Any] = {}
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        streaming = await client.ClientFactory(
            client.ClientConfig(httpx_client=http)
        ).create_from_url(base)
        events = [as_dict(event) async for event in streaming.send_message(request("hello"))]
        returned["streamed"] = events
        task_id = events[0]["task"]["id"]
        plain_config = client.ClientConfig(httpx_client=http, streaming=False)
        plain = await client.ClientFactory(plain_config).create_from_url(base)
        [sent] = [as_dict(event) async for event in plain.send_message(request("hello"))]
        returned["sent"] = sent
        found = await plain.get_task(types.GetTaskRequest(id=task_id, history_length=1))
        returned["found"] = as_dict(found)
        listed = await plain.list_tasks(types.ListTasksRequest(page_size=1, include_artifacts=True))
        returned["listed"] = as_dict(listed)
        rest = types.ListTasksRequest(
            page_token=listed.next_page_token, status=types.TASK_STATE_COMPLETED
        )
        returned["rest"] = as_dict(await plain.list_tasks(rest))
        for name, call in {
            "cancel": plain.cancel_task(types.CancelTaskRequest(id=task_id)),
            "unknown": plain.get_task(types.GetTaskRequest(id="none")),
        }.items():
            try:
                await call
            except Exception as error:  # noqa: BLE001 - the client's errors share no base
                returned[name] = type(error).__name__
    return returned


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(sys.argv[1]))))
