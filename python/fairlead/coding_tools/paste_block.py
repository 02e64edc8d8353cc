"""Commands that point a tool at the gateway on another machine, to be pasted into its terminal.

A tool that reads environment variables is started with them, and nothing is written. For another tool its files are
written, and one that is there is first copied beside itself.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from fairlead.coding_tools.entry import Launch, ToolEntry, ToolFile
from fairlead.coding_tools.filling import (
    GatewayTarget,
    changes_of,
    filled_arguments,
    filled_texts,
)
from fairlead.coding_tools.formats.document import edit

END: Final = "FAIRLEAD_END"
KEPT: Final = ".before-fairlead"


@dataclass(frozen=True, slots=True)
class PasteBlock:
    """The commands for a POSIX shell, and for PowerShell."""

    shell: str
    powershell: str


def paste_block(tool: ToolEntry, target: GatewayTarget) -> PasteBlock | None:
    """The commands of a tool; None for one that is set up by hand alone."""
    launch = tool.launch
    if launch is not None and _has_address(launch):
        variables = filled_texts(launch.environment, target)
        command = [tool.command, *filled_arguments(launch.arguments, target)]
        return PasteBlock(
            "\n".join(
                [
                    *(f"export {name}={shlex.quote(text)}" for name, text in variables.items()),
                    shlex.join(command),
                ]
            ),
            "\n".join(
                [
                    *(f"$env:{name} = {_quoted(text)}" for name, text in variables.items()),
                    _called(command),
                ]
            ),
        )
    files = [file for file in tool.files if file.members]
    if not files:
        return None
    contents = [edit(file.format, b"", changes_of(file, target)).decode() for file in files]
    written = list(zip(files, contents, strict=True))
    return PasteBlock(
        "\n".join(_shell_file(file, content) for file, content in written),
        "\n".join(_powershell_file(file, content) for file, content in written),
    )


def _has_address(launch: Launch) -> bool:
    """Whether variables and arguments alone point the tool at the gateway."""
    texts = [*launch.environment.values(), *launch.arguments]
    return not launch.files and any("%url%" in text for text in texts)


def _shell_file(file: ToolFile, content: str) -> str:
    place = f"~/{file.path}"
    folder = PurePosixPath(file.path).parent
    lines = [f"mkdir -p ~/{folder}"] if str(folder) != "." else []
    lines += [
        f"[ ! -e {place} ] || cp {place} {place}{KEPT}",
        f"cat > {place} <<'{END}'",
        f"{content.rstrip()}",
        END,
    ]
    return "\n".join([*lines, f"chmod 600 {place}"] if file.secret else lines)


def _powershell_file(file: ToolFile, content: str) -> str:
    place = f'"$HOME/{file.path}"'
    folder = PurePosixPath(file.path).parent
    lines = []
    if str(folder) != ".":
        lines.append(f'New-Item -ItemType Directory -Force "$HOME/{folder}" | Out-Null')
    # A line that begins with `'@` would end the text; none of the formats writes one.
    lines += [
        f'if (Test-Path {place}) {{ Copy-Item {place} "$HOME/{file.path}{KEPT}" }}',
        "@'",
        content.rstrip(),
        f"'@ | Set-Content {place}",
    ]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """A text that PowerShell takes as it is."""
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


def _called(command: Sequence[str]) -> str:
    return " ".join(["&", *map(_quoted, command)])
