"""The table `coding_tool_aliases`: which aliases of models belong to a coding tool.

They are aliases as any other, asked for by whoever names them: a tool whose address cannot be set asks for its maker's
models by name, and what reaches the gateway by a proxy of the user's own finds them here.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.errors import Conflict
from fairlead.gateway.combos.alias_rules import put_alias
from fairlead.gateway.combos.alias_table import delete_alias, find_alias
from fairlead.store.file import Connection


def aliases_of(con: Connection, tool: str) -> dict[str, str]:
    """The tool's aliases with what they stand for."""
    rows = con.execute(
        "SELECT m.alias, m.target FROM coding_tool_aliases t JOIN model_aliases m ON m.alias = t.alias "
        "WHERE t.tool = ? ORDER BY m.alias",
        [tool],
    ).fetchall()
    return {str(alias): str(target) for alias, target in rows}


def replace_aliases(con: Connection, tool: str, aliases: Mapping[str, str]) -> None:
    """Gives the tool these aliases in place of those before, in the writer. Raises `Conflict` for one of others."""
    before = aliases_of(con, tool)
    for alias in before.keys() - aliases.keys():
        delete_alias(con, alias)
    con.execute("DELETE FROM coding_tool_aliases WHERE tool = ?", [tool])
    for alias, model in aliases.items():
        if alias not in before and find_alias(con, alias) is not None:
            raise Conflict(
                f"alias `{alias}` already exists and belongs to another tool: delete it under "
                "/api/models/alias, or choose another.",
                param="aliases",
            )
        put_alias(con, alias, model)
        con.execute("INSERT INTO coding_tool_aliases VALUES (?, ?)", [tool, alias])
