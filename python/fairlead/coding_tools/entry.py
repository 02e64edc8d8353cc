"""An entry of the catalogue: one coding tool or agent, as its file describes it.

Texts may hold `%url%` (the gateway's address without a slash at its end), `%key%` (the key), `%model%` (the chosen
model) and, in members that stand for every model, `%each%`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, model_validator
from pydantic.alias_generators import to_camel

from fairlead.coding_tools.formats.document import Format


def _stays_below(path: str) -> str:
    if {".", ".."} & set(path.split("/")):
        raise ValueError("must stay below the home directory")
    return path


Line = Annotated[str, Field(strict=True, min_length=1, max_length=500)]
RelativePath = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$"), AfterValidator(_stays_below)
]
"""Below the home directory, without `.` and `..`."""
DocPath = Annotated[
    list[str | Annotated[dict[str, str], Field(min_length=1, max_length=1)]], Field(min_length=1)
]
"""Names of members, and for an entry of a list the field by whose value it is found."""
ToolId = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,40}$")]


class _Entry(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)


class Member(_Entry):
    """A member to set and its place in the file; once for each model of the gateway where it stands for every model."""

    at: DocPath
    value: Any
    for_each_model: StrictBool = False


class ToolFile(_Entry):
    """A file that `setup` writes. `endpoint` is the position of the gateway's address in it, `oldMembers` are
    members from an older way of configuring the tool, `secret` says whether it holds the key itself.
    """

    path: RelativePath
    format: Format
    secret: StrictBool = False
    endpoint: DocPath | None = None
    old_members: list[DocPath] = []
    members: list[Member]


class Detection(_Entry):
    """The command that is looked for in PATH, and the argument that prints its version."""

    command: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    version_argument: Literal["--version", "-V", "-v", "version"] = "--version"


class Launch(_Entry):
    """How `run` starts it: environment, arguments before the user's own, other names, and for a tool that reads its
    configuration from a file alone, the variable that names a home with these files.
    """

    aliases: list[ToolId] = []
    arguments: list[Line] = []
    environment: dict[Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")], Line] = {}
    home_variable: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")] | None = None
    files: list[ToolFile] = []


class AcpCommand(_Entry):
    """The command that speaks the Agent Client Protocol over its standard input and output: the tool's own, or an
    adapter of its maker's that is installed beside it.
    """

    command: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    arguments: list[Line] = []


class ToolEntry(_Entry):
    """One tool. `category` is `launcher` for what `run` starts and nothing configures; a tool whose `baseUrlSupport`
    is `none` is not displayed. `models` says how it learns of models: `listed` (all are written), `one` (a model is
    chosen) or `automatic` (it asks the gateway). `hostRecipe` tells whether it can be set up from the host where the
    gateway runs in a container, `checkedWith` the version that was driven through the gateway.
    """

    id: ToolId
    name: Line
    vendor: Line
    color: Annotated[str, Field(pattern=r"^#[0-9a-f]{6}$")]
    description: Line
    docs_url: Annotated[str, Field(pattern=r"^https://[^\s]+$")]
    category: Literal["code", "agent", "launcher"]
    acp_spawnable: StrictBool
    base_url_support: Literal["full", "partial", "none"]
    config_type: Literal["env", "custom", "guide", "mitm", "custom-builder"]
    models: Literal["listed", "one", "automatic"]
    host_recipe: StrictBool
    checked_with: Line
    steps: list[Line] = []
    detection: Detection | None = None
    acp: AcpCommand | None = None
    files: list[ToolFile] = []
    launch: Launch | None = None

    @property
    def is_displayed(self) -> bool:
        """Whether it is listed and can be set up."""
        return self.base_url_support != "none" and self.category != "launcher"

    @property
    def command(self) -> str:
        """The name of its command; every tool with a launch has one."""
        if self.detection is None:
            raise ValueError(f"{self.id} has no command")
        return self.detection.command

    @property
    def own_variable(self) -> str:
        """A variable for the key that no other tool reads, where the tool lets us choose its name."""
        return f"FAIRLEAD_{self.id.upper().replace('-', '_')}_KEY"

    @property
    def key_variable(self) -> str | None:
        """The environment variable from which the tool reads its key; None where it reads none that is known."""
        if self.own_variable in self.model_dump_json():
            return self.own_variable
        fixed = self.launch.environment.items() if self.launch else ()
        return next((name for name, value in fixed if value == "%key%"), None)

    @model_validator(mode="after")
    def _can_be_helped(self) -> ToolEntry:
        if self.is_displayed and not (self.files or self.launch or self.steps):
            raise ValueError("has neither files, nor a launch, nor steps for the user")
        if self.launch is not None and self.detection is None:
            raise ValueError("has a launch, and no command under detection")
        if self.acp is not None and not self.acp_spawnable:
            raise ValueError("has a command under acp, and acpSpawnable is false")
        return self
