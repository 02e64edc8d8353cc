"""The answers of `/api/cli-tools`."""

from __future__ import annotations

from fairlead.coding_tools.backups import Backup
from fairlead.coding_tools.detection import ConfigStatus, FoundCommand, FoundConfig
from fairlead.coding_tools.entry import ToolEntry
from fairlead.moment import Time
from fairlead.wire import Wire


class ToolView(Wire):
    """`files` are what `apply` writes, below the home directory; `steps` are left to the user."""

    id: str
    name: str
    vendor: str
    color: str
    description: str
    docs_url: str
    category: str
    acp_spawnable: bool
    base_url_support: str
    config_type: str
    files: list[str]
    steps: list[str]
    launches: bool

    @classmethod
    def of(cls, tool: ToolEntry) -> ToolView:
        """A tool as it is shown."""
        return cls.model_construct(
            **tool.model_dump(include=_SHOWN),
            files=[file.path for file in tool.files if file.members],
            launches=tool.launch is not None,
        )


_SHOWN = set(ToolView.model_fields) & set(ToolEntry.model_fields) - {"files"}


class ToolList(Wire):
    """`models` are what may be written into files, `baseUrl` is the address that they are given."""

    tools: list[ToolView]
    total: int
    models: list[str]
    base_url: str


class DetectionView(Wire):
    """`runnable` tells whether the command said its version in time; `reason` says why not."""

    installed: bool
    runnable: bool
    version: str | None
    command: str | None
    command_path: str | None
    reason: str | None


class ConfigView(Wire):
    """`other`: it is pointed elsewhere. `unknown`: its files cannot be read, or it has none."""

    status: ConfigStatus
    endpoint: str | None
    last_configured_at: Time | None


class ToolStatus(Wire):
    """`error` says why the tool's files cannot be read."""

    tool: str
    detection: DetectionView
    config: ConfigView
    error: str | None

    @classmethod
    def of(cls, tool: ToolEntry, command: FoundCommand, config: FoundConfig) -> ToolStatus:
        """The findings about a tool on this machine."""
        return cls.model_construct(
            tool=tool.id,
            detection=DetectionView.model_construct(
                installed=command.installed,
                runnable=command.runnable,
                version=command.version,
                command=tool.detection.command if tool.detection else None,
                command_path=command.path,
                reason=command.reason,
            ),
            config=ConfigView.model_construct(
                status=config.status,
                endpoint=config.endpoint,
                last_configured_at=config.last_configured_at,
            ),
            error=config.error,
        )


class FileView(Wire):
    """A file as it is written, secrets shown as `***`; `oldMembers` are left from an older form."""

    path: str
    content: str
    changed: bool
    old_members: list[str]


class Commands(Wire):
    """Commands for a POSIX shell, and for PowerShell."""

    shell: str
    powershell: str


class AppliedConfig(Wire):
    """`configPath` and `content` are those of the first file; no backup is made where nothing changes. `commands`
    are there with `elsewhere`, for a tool that can be set up by commands.
    """

    success: bool
    dry_run: bool
    config_path: str
    content: str
    backup_id: str | None
    backup_path: str | None
    files: list[FileView]
    commands: Commands | None = None


class ToolBackup(Wire):
    id: str
    tool: str
    created_at: Time
    reason: str
    files: list[str]

    @classmethod
    def of(cls, backup: Backup) -> ToolBackup:
        """A backup as it is shown: the files that were there."""
        return cls.model_construct(
            id=backup.id,
            tool=backup.tool,
            created_at=backup.created_at,
            reason=backup.reason,
            files=[file.path for file in backup.files if file.digest is not None],
        )


class ToolBackupList(Wire):
    backups: list[ToolBackup]
    total: int


class RestoredBackup(Wire):
    """`backups` are those that were made now, `restored` is the one whose bytes are back in `paths`."""

    backups: list[ToolBackup]
    restored: str | None
    paths: list[str]
