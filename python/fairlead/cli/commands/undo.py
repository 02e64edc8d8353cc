"""`fairlead undo`: restore the configuration that a coding tool had before `setup-<tool>`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from fairlead.cli.commands.setup import HOME, ConfigHome, EarlierKey, open_configurator, tool_named
from fairlead.cli.failure import CommandFailed
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import show_json

if TYPE_CHECKING:
    from pathlib import Path


def undo(
    tool: Annotated[str, typer.Argument(help="The tool's id, as in `setup-<tool>`.")],
    config_home: ConfigHome = HOME,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Remove what `setup-<tool>` wrote; your later edits remain."""
    from fairlead.coding_tools.configure import ConfigurationFailed

    entry = tool_named(tool)
    configurator = open_configurator(config_home.expanduser().absolute(), data_dir)
    key = EarlierKey.of(configurator.store, entry.id)
    try:
        backup, paths = configurator.undo(entry)
    except ConfigurationFailed as error:
        raise CommandFailed(str(error)) from None
    revoked = _revoke(key, url, data_dir)
    if as_json:
        shown = {"tool": entry.id, "files": [str(path) for path in paths], "backupId": backup.id}
        show_json({**shown, "revokedKey": revoked, "keyUsedBy": key.others if key else []})
        return
    for path in paths:
        print(f"{'Restored' if path.exists() else 'Removed'} {path}")
    if revoked:
        print("Revoked the key that was created for it.")


def _revoke(key: EarlierKey | None, url: str | None, data_dir: Path) -> str | None:
    """Revokes the tool's key, unless another tool sends it too; the id of a key that was revoked."""
    from fairlead.cli.instance import Instance

    if key is None or key.warn_of_others():
        return None
    try:
        with Instance(url, data_dir) as instance:
            instance.delete(f"/api/keys/{key.id}")
    except CommandFailed:
        print(
            f"fairlead: The tool's key is still valid: run `fairlead keys revoke {key.id}`.",
            file=sys.stderr,
        )
        return None
    return key.id
