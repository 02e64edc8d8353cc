"""`/api/cli-tools/<tool>-mitm`: tools whose address cannot be set in their configuration.

fairlead intercepts nothing: it makes no certificate, changes no host file and listens on no other port. The
operator can send such a tool's requests here with a proxy, and the aliases map the tool's model names.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from fairlead.coding_tools.aliases import aliases_of, replace_aliases
from fairlead.coding_tools.catalogue import catalogue
from fairlead.coding_tools.entry import ToolEntry, ToolId
from fairlead.errors import NotFound
from fairlead.gateway.combos.alias_router import AliasName, Target
from fairlead.store.file import Connection
from fairlead.store.services import ServicesDep
from fairlead.wire import Wire

router = APIRouter(prefix="/api/cli-tools", tags=["coding tools"])

MOST_ALIASES = 100
NOTE = (
    "No traffic of this tool is intercepted: its requests reach the gateway only if "
    "you set the tool's endpoint, or if your proxy sends them here. The aliases apply "
    "to every caller of these names."
)


class ToolAliases(Wire):
    """`aliases`: names that the tool asks for, and the models or combos that they stand for."""

    aliases: Annotated[dict[AliasName, Target], Field(max_length=MOST_ALIASES)]


class MitmStatus(ToolAliases):
    """`intercepting` is always false."""

    tool: str
    name: str
    intercepting: bool
    note: str


@router.get("/{tool}-mitm", summary="A tool with a fixed endpoint, and its aliases")
async def read(tool: ToolId, services: ServicesDep) -> MitmStatus:
    entry = _found(tool)
    aliases = await services.state.read(lambda con: aliases_of(con, entry.id))
    return _status(entry, aliases)


@router.post("/{tool}-mitm/alias", summary="Set the models behind such a tool's model names")
async def set_aliases(tool: ToolId, wanted: ToolAliases, services: ServicesDep) -> MitmStatus:
    """Replaces the earlier ones. They can be used when this returns."""
    entry = _found(tool)

    def store(con: Connection) -> dict[str, str]:
        replace_aliases(con, entry.id, wanted.aliases)
        return aliases_of(con, entry.id)

    return _status(entry, await services.state.commit(store))


def _found(name: str) -> ToolEntry:
    tool = catalogue().get(name)
    if tool is None or tool.config_type != "mitm":
        known = ", ".join(each.id for each in catalogue().values() if each.config_type == "mitm")
        raise NotFound(f"There is no such tool: those whose address cannot be set are {known}.")
    return tool


def _status(tool: ToolEntry, aliases: dict[str, str]) -> MitmStatus:
    return MitmStatus.model_construct(
        tool=tool.id, name=tool.name, intercepting=False, note=NOTE, aliases=aliases
    )
