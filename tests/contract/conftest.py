"""The control plane's application in this process, driven as the relay drives it; official clients and the stand-in."""

from __future__ import annotations

import functools
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from argon2 import PasswordHasher
from fastapi import FastAPI

from fairlead.identity import password
from fairlead.settings import ControlConfig
from tests.support.dialects import add_standin
from tests.support.gateway_pool import GatewayPool
from tests.support.management import LOCAL, config_in, run_application
from tests.support.processes import Gateway
from tests.support.put_back import StateAtStart, forget_guesses, shares_control

if TYPE_CHECKING:
    # These clients take seconds to import, and most files here need none of them.
    import openai

    from tests.support.sdk_clients import GenaiCaller


@dataclass
class Control:
    """`client` speaks as the local command line from 192.0.2.1."""

    app: FastAPI
    client: httpx.AsyncClient
    data_dir: Path

    def as_principal(
        self, kind: str, principal_id: str | None = None, scopes: list[str] | None = None
    ) -> dict[str, str]:
        principal = {"kind": kind, "id": principal_id, "scopes": scopes or []}
        return {"x-fairlead-principal": json.dumps(principal)}

    def snapshot(self) -> dict:
        return json.loads((self.data_dir / "snapshot.json").read_bytes())


@pytest.fixture(scope="module")
def standin(gateway: Gateway, standin_url: str) -> dict[str, str]:
    """The stand-in behind the gateway once in each dialect: the prefix of its models."""
    return add_standin(gateway, standin_url)


@pytest.fixture(scope="module")
def model(standin: dict[str, str]) -> str:
    """The stand-in's model behind a node that speaks OpenAI's chat completions."""
    return f"{standin['openai']}/standin"


@pytest.fixture
def client(gateway: Gateway) -> Iterator[openai.OpenAI]:
    """OpenAI's client with the gateway's unlimited key."""
    from tests.support.sdk_clients import openai_client

    with openai_client(gateway) as made:
        yield made


@pytest.fixture(scope="module")
def loopback_gateway(gateway_pool: GatewayPool) -> Iterator[Gateway]:
    """A gateway that may call this machine, so that webhooks come to the tests' listeners."""
    with gateway_pool.lease(FAIRLEAD_ALLOW_PRIVATE_FETCH="127.0.0.0/8") as running:
        yield running


@pytest.fixture(scope="module")
def loopback_standin(loopback_gateway: Gateway, standin_url: str) -> dict[str, str]:
    """The stand-in behind `loopback_gateway` once in each dialect: the prefix of its models."""
    return add_standin(loopback_gateway, standin_url)


@pytest.fixture
def callers(loopback_gateway: Gateway) -> Iterator[Callable[..., GenaiCaller]]:
    """Makes callers of `loopback_gateway`, each with a key of its own; takes what `GenaiCaller` takes."""
    from tests.support.sdk_clients import GenaiCaller

    with ExitStack() as made:

        def make(version: str | None = None, **key: Any) -> GenaiCaller:
            return made.enter_context(closing(GenaiCaller(loopback_gateway, version, **key)))

        yield make


@pytest.fixture(scope="module", autouse=True)
def low_cost_of_hashes() -> Iterator[None]:
    """Passwords that are stored in this process cost 1 MiB: as shipped, each takes a fifth of a second of a core.

    What is shipped is held by tests/unit/python/identity/test_password.py, and is what gateways have.
    """
    hasher = functools.partial(PasswordHasher, time_cost=1, memory_cost=1024)
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(password, "PasswordHasher", hasher)
        yield


@pytest.fixture
def config(tmp_path: Path) -> ControlConfig:
    return config_in(tmp_path)


@pytest.fixture
def control(request: pytest.FixtureRequest) -> Control:
    """The application with the state of a fresh instance."""
    is_shared = shares_control(request)
    running: Control = request.getfixturevalue("shared_control" if is_shared else "own_control")
    return running


@pytest.fixture
async def own_control(config: ControlConfig) -> AsyncIterator[Control]:
    """An application that was just started."""
    async with run_application(config, LOCAL, "192.0.2.1") as (app, client):
        yield Control(app, client, config.data_dir)


@pytest.fixture(scope="module")
async def running_control(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[tuple[Control, StateAtStart]]:
    """The application of a file, with the state that it began with."""
    config = config_in(tmp_path_factory.mktemp("control"))
    async with run_application(config, LOCAL, "192.0.2.1") as (app, client):
        control = Control(app, client, config.data_dir)
        yield control, await StateAtStart.of(app.state.services)


@pytest.fixture
async def shared_control(
    running_control: tuple[Control, StateAtStart],
) -> AsyncIterator[Control]:
    """The application of a file, whose state is put back after the test."""
    control, state_at_start = running_control
    forget_guesses(control.app)
    yield control
    await state_at_start.put_back()
