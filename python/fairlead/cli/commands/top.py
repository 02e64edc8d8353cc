"""`fairlead top`: the traffic of this moment, drawn again every few seconds."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from math import ceil
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from fairlead.cli.failure import CommandFailed
from fairlead.cli.metrics_text import parse_metrics
from fairlead.cli.money import total_of
from fairlead.cli.names import provider_names
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import show_json
from fairlead.cli.printable import printable
from fairlead.cli.traffic import ProviderTraffic, Traffic, traffic_between

if TYPE_CHECKING:
    from fairlead.cli.instance import Instance

_LINES_AROUND: Final = 6
"""Lines of the screen that no provider has: the two above the table, its head, rule and edge, the last line."""


def top(
    every: Annotated[float, typer.Option(min=0.5, max=60.0, help="Seconds between updates.")] = 2.0,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Show live requests, streams, latency, cost and errors by provider. Press `q` or Ctrl-C to quit.

    With `--json` it is one look over one interval.
    """
    from fairlead.cli.instance import Instance

    if not as_json and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CommandFailed("it draws on a terminal: use --json for one look.")
    with Instance(url, data_dir) as instance:
        samples = traffic(instance)
        next(samples)
        if as_json:
            time.sleep(every)
            show_json(next(samples).document())
        else:
            _draw(instance.url, samples, every)


def traffic(instance: Instance) -> Iterator[Traffic]:
    """The traffic between each look and the one before; the first look has nothing before it."""
    names = provider_names(instance)
    earlier, earlier_s = parse_metrics(instance.text("/metrics")), time.monotonic()
    yield traffic_between(earlier, earlier, 1.0, names)
    while True:
        later, later_s = parse_metrics(instance.text("/metrics")), time.monotonic()
        yield traffic_between(earlier, later, max(later_s - earlier_s, 0.001), names)
        earlier, earlier_s = later, later_s


def _draw(url: str, samples: Iterator[Traffic], every: float) -> None:
    from rich.console import Console
    from rich.live import Live

    console = Console()
    with (
        _pressed_key() as pressed_key,
        contextlib.suppress(KeyboardInterrupt),
        Live(console=console, screen=True, auto_refresh=False) as live,
    ):
        live.update(_frame(url, None, console.height), refresh=True)
        while pressed_key(every) not in ("q", "Q"):
            live.update(_frame(url, next(samples), console.height), refresh=True)


def _frame(url: str, sample: Traffic | None, lines: int) -> Any:
    """The whole screen, in so many lines: the busiest providers that fit, and how many do not."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    head = Text(f"{printable(url)}   q ends", no_wrap=True, overflow="ellipsis")
    if sample is None:
        return Group(head, Text("Looking ..."))
    figures = Text(
        f"{sample.requests_per_s:.1f} requests/s   {sample.errors_per_s:.1f} errors/s   "
        f"{sample.in_flight} in flight   {sample.open_streams} streams   "
        f"{sample.shed_per_s:.1f} turned away/s   "
        f"{_cost(sample)}/min"
    )
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("provider", overflow="ellipsis", no_wrap=True)
    for heading in ("req/s", "err/s", "mean ms", "p95 ms", "tokens/s", "cost/min"):
        table.add_column(heading, justify="right", no_wrap=True)
    shown = sample.providers[: max(lines - _LINES_AROUND, 1)]
    for each in shown:
        table.add_row(
            Text(printable(each.provider)),
            f"{each.requests_per_s:.1f}",
            f"{each.errors_per_s:.1f}",
            _milliseconds(each.mean_latency_ms),
            _milliseconds(each.p95_latency_ms),
            f"{each.tokens_per_s:.0f}",
            _cost(each),
        )
    if not (left_out := len(sample.providers) - len(shown)):
        return Group(head, figures, table)
    return Group(head, figures, table, Text(f"and {left_out} more, less busy"))


def _cost(each: Traffic | ProviderTraffic) -> str:
    """The cost in a minute, and the number of requests without a price that it leaves out."""
    # Less than one in a minute is not none.
    return total_of(round(each.cost_usd_micros_per_minute), ceil(each.unpriced_per_minute))


def _milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


@contextlib.contextmanager
def _pressed_key() -> Iterator[Callable[[float], str | None]]:
    """Waits so many seconds for a key; the terminal gives keys at once meanwhile, and is put back afterwards."""
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)

    def wait(seconds: float) -> str | None:
        ready, _, _ = select.select([terminal], [], [], seconds)
        return os.read(terminal, 1).decode("ascii", "replace") if ready else None

    tty.setcbreak(terminal)
    try:
        yield wait
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
