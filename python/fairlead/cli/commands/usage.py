"""`fairlead usage`: requests, tokens, cost and latency over time; `fairlead usage rebuild` makes the database again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from fairlead.cli.failure import CommandFailed
from fairlead.cli.money import total
from fairlead.cli.names import key_names, provider_names
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import print_message, show_json, show_table
from fairlead.cli.span import Since, since_parameter

if TYPE_CHECKING:
    from fairlead.cli.instance import Instance

TELL_EVERY_S: Final = 2.0
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


app = typer.Typer(invoke_without_command=True)


@app.callback(help="Show usage over time.")
def usage(
    ctx: typer.Context,
    by: Annotated[
        str, typer.Option(help=f"What to group by, with commas: {', '.join(FIELDS)}.")
    ] = "day,model",
    since: Since = "7d",
    limit: Annotated[int, typer.Option(min=1, max=500, help="The number of rows.")] = 50,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Show usage over time, grouped."""
    from fairlead.cli.instance import Instance

    if ctx.invoked_subcommand is not None:
        return
    with Instance(url, data_dir) as instance:
        start = since_parameter(since)
        query = {"groupBy": by, "limit": limit, "from": start}
        answer = instance.get("/api/usage/history", **query)
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
                total(row),
                f"{row['p50LatencyMs']:.0f}",
                f"{row['p95LatencyMs']:.0f}",
            ]
            for row in answer["history"]
        ],
        empty="There were no calls in this time.",
    )


@app.command()
def rebuild(data_dir: DataDir = DATA_DIR, as_json: Json = False) -> None:
    """Rebuild usage.duckdb from the log in the database of FAIRLEAD_DATABASE_URL.

    The node must be stopped. The old file is renamed to usage.duckdb.replaced; only it has sums that are older
    than the log. After an interruption the command resumes.
    """
    import asyncio
    import sys
    import time

    from fairlead.errors import FairleadError, Refusal
    from fairlead.serve.directory import DataDirectory
    from fairlead.settings.serve import ServeSettings
    from fairlead.store.state_database import check_postgresql

    told_s = time.monotonic()

    def report(segments: int, of: int) -> None:
        nonlocal told_s
        if time.monotonic() - told_s >= TELL_EVERY_S or segments == of:
            told_s = time.monotonic()
            print(f"{segments} of {of} segments", file=sys.stderr)

    folder = data_dir.expanduser().absolute()
    try:
        url = ServeSettings.load(data_dir=folder).database_url
        if url is None:
            raise CommandFailed(
                "FAIRLEAD_DATABASE_URL is not set: only the usage of nodes that share a database has a log."
            )
        check_postgresql()
        from psycopg import Error

        from fairlead.store.postgresql.schema import first_line
        from fairlead.usage.ingestion.rebuild import rebuild_usage

        try:
            with DataDirectory(folder):
                made = asyncio.run(rebuild_usage(folder, url.get_secret_value(), report))
        except Error as error:
            raise CommandFailed(f"The log cannot be read: {first_line(error)}.") from None
    except Refusal as refusal:
        raise CommandFailed(refusal.sentence) from None
    except FairleadError as error:
        raise CommandFailed(error.message) from None
    replaced = None if made.replaced is None else str(made.replaced)
    if as_json:
        show_json({"segments": made.segments, "requests": made.requests, "replaced": replaced})
        return
    print_message(f"usage.duckdb has {made.requests} requests of {made.segments} segments.")
    if replaced is not None:
        print_message(
            f"The file that was there before is {replaced}: delete it when you do not need it."
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
