"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DATA_DIR = Path("~/.fairlead")

DataDir = Annotated[
    Path,
    typer.Option(
        "--data-dir", envvar="FAIRLEAD_DATA_DIR", help="The data directory of the instance."
    ),
]
Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="FAIRLEAD_URL",
        help="The gateway's address. Default: from the data directory or the context.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the API's answer as JSON.")]
