"""MCP tools of the gateway, for people who manage it: its models and its health."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from fairlead.gateway.combos.table import all_combos
from fairlead.gateway.health.router import health
from fairlead.gateway.health.views import HealthView
from fairlead.gateway.providers.snapshot import compile_connections
from fairlead.mcp.tool import Call, Tool
from fairlead.store.file import Connection
from fairlead.wire import Wire


class EmptyBody(Wire):
    pass


class ListModels(Wire):
    text: Annotated[str, Field(max_length=300)] | None = Field(
        default=None, description="A text in the model's name."
    )
    limit: Annotated[int, Field(strict=True, ge=1, le=500)] = 100
    offset: Annotated[int, Field(strict=True, ge=0, le=2**31)] = 0


class ToolModel(Wire):
    id: str = Field(description="The name for requests.")
    provider: str | None
    context_length: int | None = Field(description="Tokens.")
    max_output_tokens: int | None


class Models(Wire):
    models: list[ToolModel]
    combos: list[str] = Field(description="Names that stand for several models.")
    total: int


async def _list_models(call: Call, given: ListModels) -> Models:
    wanted = (given.text or "").lower()

    def read_models(con: Connection) -> Models:
        found = [
            each for each in compile_connections(con)["models"] if wanted in each["id"].lower()
        ]
        names = [combo.fields.name for combo in all_combos(con) if combo.fields.is_active]
        return Models(
            models=[
                ToolModel.model_construct(
                    **{name: each[name] for name in ("id", "provider")},
                    context_length=each["context_length"],
                    max_output_tokens=each["max_output_tokens"],
                )
                for each in found[given.offset : given.offset + given.limit]
            ],
            combos=names,
            total=len(found),
        )

    return await call.services.state.read(read_models)


async def _health(call: Call, _: EmptyBody) -> HealthView:
    return await health(call.services)


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        "gateway_models",
        "List models",
        "The models that the gateway's connections serve.",
        ListModels,
        Models,
        _list_models,
        reads=True,
        needs_manage=True,
        group="gateway",
    ),
    Tool(
        "gateway_health",
        "See the gateway's health",
        "How the gateway, its providers and its storage are.",
        EmptyBody,
        HealthView,
        _health,
        reads=True,
        needs_manage=True,
        group="gateway",
    ),
)
