"""`fairlead logs`: settled requests, and new ones as they are settled."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import quote

import typer

from fairlead.cli.commands.completion import complete_key, complete_model
from fairlead.cli.commands.refused import RefusedFeed, mention_refused, show_refused
from fairlead.cli.failure import CommandFailed
from fairlead.cli.money import cost_of
from fairlead.cli.names import key_names, provider_names
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import print_message, show_json, show_json_line, show_table
from fairlead.cli.printable import printable_text

if TYPE_CHECKING:
    from fairlead.cli.instance import Instance

_PATH: Final = "/api/usage/logs"
_PAGE: Final = 500
_COLUMNS: Final = {
    "time": 24,
    "status": 6,
    "model": 30,
    "provider": 12,
    "key": 24,
    "in": 6,
    "out": 6,
    "cost": 11,
    "ms": 6,
    "error": 0,
}
"""Headings, each with the width of its column where requests are followed."""
_PAGES_MAX: Final = 20
_EVERY_S: Final = 1.0
_PATIENCE_S: Final = 60.0
"""How long a gateway may be away, as while it is restarted, before following it ends."""

Record = dict[str, Any]


app = typer.Typer(invoke_without_command=True)


@app.callback(help="Show finished requests.")
def logs(
    ctx: typer.Context,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            "-f",
            help="Print new requests as they finish, until Ctrl-C. With --json, one line for each.",
        ),
    ] = False,
    limit: Annotated[
        int, typer.Option("-n", "--limit", min=1, max=500, help="The number of requests.")
    ] = 20,
    model: Annotated[
        str | None,
        typer.Option(help="Only requests for this model.", autocompletion=complete_model),
    ] = None,
    provider: Annotated[
        str | None, typer.Option(help="Only requests to this provider, by its id.")
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(help="Only requests of this key, by its id.", autocompletion=complete_key),
    ] = None,
    status: Annotated[
        int | None, typer.Option(help="Only requests that were answered with this status.")
    ] = None,
    outcome: Annotated[
        str | None, typer.Option(help="Only requests with this outcome, such as upstream_failed.")
    ] = None,
    combo: Annotated[str | None, typer.Option(help="Only requests for this combo.")] = None,
    connection: Annotated[
        str | None, typer.Option(help="Only requests over this connection, by its id.")
    ] = None,
    session_tag: Annotated[
        str | None, typer.Option(help="Only requests with this session tag (X-Gateway-Session-Id).")
    ] = None,
    refused: Annotated[
        bool,
        typer.Option(
            "--refused",
            help="Show instead the requests that were refused because of the caller's key or address.",
        ),
    ] = False,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Show finished requests, the newest last. With `--refused`, show those of callers who were refused."""
    from fairlead.cli.instance import Instance

    if ctx.invoked_subcommand is not None:
        return
    filters = {
        "model": model,
        "provider": provider,
        "keyId": key,
        "status": status,
        "outcome": outcome,
        "combo": combo,
        "connectionId": connection,
        "sessionTag": session_tag,
    }
    has_filter = any(value is not None for value in filters.values())
    if refused and (follow or has_filter):
        raise CommandFailed("--refused goes without --follow and without a filter.")
    with Instance(url, data_dir) as instance:
        if refused:
            show_refused(instance, limit, as_json=as_json)
            return
        answer = instance.get(_PATH, limit=limit, **filters)
        if follow:
            with_refused = not as_json and not has_filter
            feed = LogFeed(instance, filters, with_refused=with_refused)
            _follow(feed, answer["logs"], as_json=as_json)
        elif as_json:
            show_json(answer)
        else:
            names = provider_names(instance) | key_names(instance)
            show_table(
                list(_COLUMNS),
                [_row(record, names) for record in reversed(answer["logs"])],
                empty="No request has finished yet.",
            )
            mention_refused(instance)


@app.command()
def show(
    request_id: Annotated[
        str,
        typer.Argument(
            help="The request's id, from `fairlead logs --json` or the header `X-Gateway-Request-Id`."
        ),
    ],
    body: Annotated[
        bool,
        typer.Option("--body", help="Show the request and response bodies, if they were stored."),
    ] = False,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Show one request. With `--body`, show its stored bodies, which is recorded in the audit log."""
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        if body:
            bodies = instance.get(f"{_PATH}/{quote(request_id, safe='')}/body")
            show_json(bodies) if as_json else _print_bodies(bodies)
            return
        found = instance.get("/api/usage/request-logs", requestId=request_id, limit=1)["logs"]
    if not found:
        raise CommandFailed(
            "the log has no request with this id. A request appears when it has finished; those of keys "
            "with noLog never do."
        )
    if as_json:
        show_json(found[0])
    else:
        show_table(
            ["field", "value"],
            [[name, value] for name, value in found[0].items() if value not in (None, [], "")],
            empty="",
        )


def _print_bodies(bodies: dict[str, Any]) -> None:
    answer = bodies["response"]
    whole = "" if answer["isWhole"] else ", not to its end"
    _print_body("Asked", bodies["request"])
    _print_body(f"Answered with {answer['status']}{whole}", answer)


def _print_body(title: str, message: dict[str, Any]) -> None:
    cut = ", only the beginning is kept" if message["isCut"] else ""
    print_message(f"{title}: {message['contentType'] or 'no body'}, {message['bytes']} bytes{cut}")
    text = message.get("text") or message["body"]
    print(printable_text(text) if text is not None else "It is none that is kept.")
    print()


class LogFeed:
    """Settled requests that were not shown before; a long one settles after others that began later."""

    def __init__(
        self, instance: Instance, filters: dict[str, Any], *, with_refused: bool = False
    ) -> None:
        self.instance = instance
        self.refused = RefusedFeed(instance) if with_refused else None
        self._filters = filters
        self._shown: OrderedDict[str, None] = OrderedDict()

    def mark(self, records: list[Record]) -> None:
        """Remembers what was shown, as much as one look can bring."""
        for record in records:
            self._shown[record["requestId"]] = None
        while len(self._shown) > 2 * _PAGE * _PAGES_MAX:
            self._shown.popitem(last=False)

    def mark_present(self) -> None:
        """Remembers the existing rows."""
        self.mark(self.instance.get(_PATH, limit=_PAGE, **self._filters)["logs"])

    def fresh(self) -> list[Record]:
        """New records, the oldest first; looks further back while a whole page is new."""
        found: list[Record] = []
        for page in range(_PAGES_MAX):
            logs = self.instance.get(_PATH, limit=_PAGE, offset=page * _PAGE, **self._filters)[
                "logs"
            ]
            unseen = [record for record in logs if record["requestId"] not in self._shown]
            found += unseen
            if len(unseen) < _PAGE:
                break
        self.mark(found)
        return sorted(found, key=lambda record: str(record["timestamp"]))


def _follow(feed: LogFeed, first: list[Record], *, as_json: bool) -> None:
    """Prints what comes until Ctrl-C. Raises `CommandFailed` once the gateway is away for long."""
    names = {} if as_json else provider_names(feed.instance) | key_names(feed.instance)
    feed.mark_present()
    feed.mark(first)
    if not as_json:
        print_message(_line(list(_COLUMNS)))
    _print(list(reversed(first)), names, as_json=as_json)
    last_answer_s = time.monotonic()
    while True:
        time.sleep(_EVERY_S)
        try:
            _print(feed.fresh(), names, as_json=as_json)
            for count in feed.refused.fresh() if feed.refused else ():
                print_message(_line(_refused_row(count)))
        except CommandFailed:
            if time.monotonic() - last_answer_s > _PATIENCE_S:
                raise
        else:
            last_answer_s = time.monotonic()


def _print(records: list[Record], names: dict[str, str], *, as_json: bool) -> None:
    for record in records:
        if as_json:
            show_json_line(record)
        else:
            print_message(_line(_row(record, names)))


def _line(cells: list[Any]) -> str:
    """Cells below their headings, as far as they fit."""
    widths = _COLUMNS.values()
    texts = ("-" if cell is None else str(cell) for cell in cells)
    return "  ".join(text.ljust(width) for text, width in zip(texts, widths, strict=True)).rstrip()


def _row(record: Record, names: dict[str, str]) -> list[Any]:
    return [
        record["timestamp"],
        record["status"],
        record["model"],
        names.get(record["provider"], record["provider"]),
        names.get(record["keyId"], record["keyId"]),
        record["tokensInput"],
        record["tokensOutput"],
        cost_of(record),
        f"{record['latencyMs']:.0f}",
        " ".join(filter(None, (record["errorKind"], record["errorMessage"]))) or None,
    ]


def _refused_row(count: Record) -> list[Any]:
    """Refused requests in the columns of the log: the address takes the place of the key."""
    request = f"{count['method']} {count['path']}".strip() or None
    error = f"{count['kind']} {count['message']}".strip()
    address = count["address"] or "others"
    return [count["minute"], count["status"], request, None, address, 0, 0, None, None, error]
