"""The MCP endpoints and their tools.

`/mcp/rpc` offers only the board, since that is the scope of users' consent; `/mcp` adds the gateway's tools,
for people who manage it.
"""

from __future__ import annotations

from fastapi import APIRouter

from fairlead.board.tools import TOOLS as BOARD
from fairlead.gateway.tools import TOOLS as GATEWAY
from fairlead.mcp.oauth_endpoint import oauth_endpoint
from fairlead.mcp.server import Server
from fairlead.mcp.static_endpoint import static_endpoint
from fairlead.mcp.tool import toolbox
from fairlead.usage.tools import TOOLS as USAGE

INSTRUCTIONS = (
    "A project board. Projects have todos in one order, each with a status (backlog, "
    "todo, in_progress, review, done), and sprints and tags. Begin with projects_list; "
    "board_get shows a project at a glance. Ids are opaque: take them from lists. To "
    "move a todo, name the todo before or after which it goes."
)

RPC = Server("fairlead", "fairlead board", INSTRUCTIONS, toolbox(BOARD))
STATIC = Server(
    "fairlead",
    "fairlead",
    f"{INSTRUCTIONS} People who manage the gateway also have tools for its models, usage and health.",
    toolbox(BOARD, GATEWAY, USAGE),
)

ROUTERS: tuple[APIRouter, ...] = (
    oauth_endpoint("/mcp/rpc", RPC),
    static_endpoint("/mcp", STATIC),
)
