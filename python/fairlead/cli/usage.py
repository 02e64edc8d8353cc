"""`fairlead usage`: requests, tokens, cost and latency over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from fairlead.cli.money import dollars
from fairlead.cli.names import key_names, provider_names
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import show_json, show_table
from fairlead.cli.span import Since, since_parameter

if TYPE_CHECKING:
    from fairlead.cli.instance import Instance

# The field of a row for each dimension; those of time share one.
FIELDS: Final = {
    "minute": "bucket",
    "hour": "bucket",
    "day": "bucket",
    "month": "bucket",
    "provider": "provider",
    "model": "model",
    "key": "keyId",
    "endpoint": "endpoint",
    "connection": "connectionId",
    "combo": "combo",
}


def usage(
    by: Annotated[
        str, typer.Option(help=f"What to group by, with commas: {', '.join(FIELDS)}.")
    ] = "day,model",
    since: Since = "7d",
    limit: Annotated[int, typer.Option(min=1, max=500, help="How many rows.")] = 50,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Show usage over time, in groups."""
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        answer = instance.get(
            "/api/usage/history", groupBy=by, limit=limit, **{"from": since_parameter(since)}
        )
        if as_json:
            show_json(answer)
            return
        name_groups(instance, answer["history"], answer["groupBy"])
    show_table(
        [*answer["groupBy"], "requests", "errors", "tokens in", "out", "cost", "p50 ms", "p95 ms"],
        [
            [
                *(row[FIELDS[group]] for group in answer["groupBy"]),
                row["requests"],
                row["errors"],
                row["tokensInput"],
                row["tokensOutput"],
                dollars(row["costUsdMicros"]),
                f"{row['p50LatencyMs']:.0f}",
                f"{row['p95LatencyMs']:.0f}",
            ]
            for row in answer["history"]
        ],
        empty="Nothing was called in that time.",
    )


def name_groups(instance: Instance, rows: list[dict[str, Any]], groups: list[str]) -> None:
    """Puts the names of keys and nodes in the place of their ids."""
    if "key" in groups:
        _rename(rows, "keyId", key_names(instance))
    if "provider" in groups:
        _rename(rows, "provider", provider_names(instance))


def _rename(rows: list[dict[str, Any]], field: str, names: dict[str, str]) -> None:
    for row in rows:
        row[field] = names.get(row[field], row[field])
