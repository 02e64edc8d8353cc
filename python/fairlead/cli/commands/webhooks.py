"""`fairlead webhooks`: listeners for the gateway's events, and the deliveries to them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from fairlead.cli.collection import Collection
from fairlead.cli.failure import CommandFailed
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import pick, print_message, show_json, show_table
from fairlead.cli.record_commands import RecordCommands

app = typer.Typer(help="Webhooks and their deliveries.", no_args_is_help=True)

WEBHOOKS: Final = Collection(
    path="/api/webhooks",
    key="webhooks",
    kind="webhook",
    columns={
        "id": "id",
        "name": "name",
        "url": "url",
        "events": lambda webhook: ", ".join(webhook["events"]),
        "state": "state",
        "reason": "disabledReason",
    },
    wrapper="webhook",
    empty="There are no webhooks: create one with `fairlead webhooks create <url>`.",
    label="url",
)

Webhook = Annotated[str, typer.Argument(metavar="WEBHOOK", help="The webhook's id, name or URL.")]
Secret = Annotated[
    str | None,
    typer.Option(
        envvar="FAIRLEAD_WEBHOOK_SECRET",
        hidden=True,
        help="Other users can see command lines: use the variable.",
    ),
]

COMMANDS: Final = RecordCommands(app, WEBHOOKS, Webhook)
COMMANDS.add_list("List the webhooks.")


@app.command()
def create(
    target: Annotated[str, typer.Argument(metavar="URL", help="The URL that events are sent to.")],
    event: Annotated[
        list[str] | None, typer.Option(help="An event to send. Repeatable. Default: all events.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="A name to recognise it by.")] = None,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Create a webhook and print its secret. It is shown only once."""
    body: dict[str, Any] = {"url": target, "events": event or ["*"]}
    if name:
        body["name"] = name
    created = WEBHOOKS.create(url, data_dir, body)
    if as_json:
        show_json(created)
        return
    print_message(created["secret"])
    print_message(
        f"Keep it: it cannot be shown again. The webhook's id is {created['webhook']['id']}.",
        to_stderr=True,
    )


COMMANDS.add_delete("Delete a webhook, its pending deliveries and its history.")
COMMANDS.add_show("Show every field of a webhook except its secret.")
COMMANDS.add_edit("Change fields of a webhook. Fields that you do not name stay as they are.")


@app.command("test")
def send_test(
    webhook: Webhook, data_dir: DataDir = DATA_DIR, url: Url = None, as_json: Json = False
) -> None:
    """Send a `test.ping` event now and show the result."""
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        found = WEBHOOKS.find(instance, webhook)
        answer = instance.post(f"/api/webhooks/{found['id']}/test", {})
    if as_json:
        show_json(answer)
    if not answer["delivered"]:
        raise CommandFailed(f"the test was not delivered. {answer['error']}")
    if not as_json:
        print_message(f"Delivered: {answer['status']} after {answer['latencyMs']:.0f} ms.")


@app.command()
def deliveries(
    webhook: Webhook,
    limit: Annotated[
        int, typer.Option(min=1, max=500, help="The number of deliveries, newest first.")
    ] = 50,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """List deliveries to a webhook, newest first."""
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        found = WEBHOOKS.find(instance, webhook)
        answer = instance.get(f"/api/webhooks/{found['id']}/deliveries", limit=limit)
    if as_json:
        show_json(answer)
        return
    names = ("id", "event", "state", "status", "errorKind")
    show_table(
        ["id", "event", "state", "status", "error", "attempts", "created", "next attempt"],
        [
            [
                *pick(delivery, *names),
                len(delivery["attempts"]),
                *pick(delivery, "createdAt", "nextAttemptAt"),
            ]
            for delivery in answer["deliveries"]
        ],
        empty="Nothing has been sent to it yet.",
    )


@app.command("rotate-secret")
def rotate_secret(
    webhook: Webhook,
    keep_hours: Annotated[
        int, typer.Option(min=0, max=168, help="How many hours the old secrets stay valid.")
    ] = 24,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Create a new secret and print it. It is shown only once."""
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        path = f"/api/webhooks/{WEBHOOKS.find(instance, webhook)['id']}/rotate-secret"
        answer = instance.post(path, {"keepPreviousHours": keep_hours})
    if as_json:
        show_json(answer)
        return
    print_message(answer["secret"])
    print_message(
        f"Keep it: it cannot be shown again. Old ones count for {keep_hours} h.", to_stderr=True
    )


@app.command()
def redeliver(
    webhook: Webhook,
    delivery: Annotated[str, typer.Option(help="The id of a delivery.")],
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Send a delivery again, with a new signature."""
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        path = f"/api/webhooks/{WEBHOOKS.find(instance, webhook)['id']}/redeliver"
        answer = instance.post(path, {"deliveryId": delivery, "state": "any"})
    if as_json:
        show_json(answer)
    else:
        print_message(f"{answer['requeued']} to be sent again.")


@app.command()
def verify(
    message_id: Annotated[str, typer.Option("--id", help="The header `webhook-id`.")],
    timestamp: Annotated[str, typer.Option(help="The header `webhook-timestamp`.")],
    signature: Annotated[str, typer.Option(help="The header `webhook-signature`.")],
    body: Annotated[Path, typer.Option(help="File with the body's exact bytes, `-` for stdin.")],
    tolerance_s: Annotated[int, typer.Option(min=0, help="The maximum age, in seconds.")] = 300,
    jwks: Annotated[
        str | None,
        typer.Option(
            help="For a webhook of a single job: the keys, as a file or the URL of the gateway's "
            "`/.well-known/jwks.json`."
        ),
    ] = None,
    audience: Annotated[
        str | None, typer.Option(help="For a webhook of a single job: its URL, as in the job.")
    ] = None,
    secret: Secret = None,
) -> None:
    """Check a delivery that was received: with the secret in FAIRLEAD_WEBHOOK_SECRET, or, of a job's
    own listener, with the gateway's published keys.
    """
    from fairlead import _core
    from fairlead.moment import now_ms

    if (jwks is None) != (audience is None):
        raise CommandFailed("--jwks and --audience belong together: give both.")
    if not secret and jwks is None:
        raise CommandFailed(
            "there is no secret: set FAIRLEAD_WEBHOOK_SECRET to it, or give --jwks and --audience."
        )
    try:
        content = sys.stdin.buffer.read() if str(body) == "-" else body.read_bytes()
    except OSError as error:
        raise CommandFailed(f"{body} cannot be read: {error.strerror}.") from None
    now_s = now_ms() // 1000
    try:
        if jwks is not None and audience is not None:
            from fairlead.webhooks.token import ReceivedDelivery, verify_token

            received = ReceivedDelivery(message_id, timestamp, signature, content)
            verify_token(_keys(jwks), received, _normalised(audience), now_s, tolerance_s)
        else:
            _core.verify_webhook(
                [secret or ""], message_id, timestamp, signature, content, now_s, tolerance_s
            )
    except ValueError as error:
        raise CommandFailed(f"the delivery is not genuine: {error}.") from None
    print_message("The delivery is genuine.")


def _keys(place: str) -> bytes:
    """The document of keys at an address, or in a file."""
    import httpx

    if not place.startswith(("http://", "https://")):
        try:
            return Path(place).read_bytes()
        except OSError as error:
            raise CommandFailed(f"{place} cannot be read: {error.strerror}.") from None
    try:
        answer = httpx.get(place, timeout=10.0, trust_env=False)
    except (httpx.HTTPError, httpx.InvalidURL):
        raise CommandFailed(f"no keys could be read from {place}.") from None
    if answer.status_code != 200:
        raise CommandFailed(f"{place} answers {answer.status_code}, not the keys.")
    return answer.content


def _normalised(address: str) -> str:
    """A listener's address as the gateway spells it in tokens."""
    from fairlead.net.egress import Egress
    from fairlead.net.host import AddressRefused

    egress = Egress("0.0.0.0/0,::/0")
    try:
        return egress.normalise_target(address)
    except AddressRefused as error:
        raise CommandFailed(f"--audience {error}.") from None
    finally:
        egress.close()
