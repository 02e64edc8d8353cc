"""The page that is kept of a run, and the table in the README."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from bars import OURS, bars
from outcome import Outcome
from streams import NEW_REQUESTS

README_BEGIN = "<!-- bench:begin (written by benches/load/run.py --readme) -->"
README_END = "<!-- bench:end -->"

COLUMNS = (
    "target",
    "c1 p50 us",
    "c32 req/s",
    "c32 p50 ms",
    "c32 p99 ms",
    "CPU us/req",
    "streams/s",
    "CPU us/stream",
    "RSS MB",
    "all MB",
)


def table(found: Outcome) -> list[str]:
    """Medians, the fastest first."""
    one, unary, stream = "unary-c1", "unary-c32", "stream-c32"
    lines = [row(*COLUMNS), row("---", *["--:"] * (len(COLUMNS) - 1))]
    for name in sorted(found.samples, key=lambda it: -(found.per_second(it, unary) or 0)):
        shown = f"**{name}**" if name == OURS else name
        lines.append(
            row(
                f"{shown} {found.versions.get(name, '')}".strip(),
                cell(found.p50_us(name, one)),
                cell(found.per_second(name, unary)),
                cell(found.p50_us(name, unary), 1e3, 2),
                cell(found.p99_us(name, unary), 1e3, 1),
                cell(found.cpu_us(name, unary)),
                cell(found.per_second(name, stream)),
                cell(found.cpu_us(name, stream)),
                cell(found.rss_bytes(name), 1e6),
                cell(found.pss_bytes.get(name), 1e6),
            )
        )
    return lines


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def cell(value: float | None, unit: float = 1, digits: int = 0) -> str:
    return "-" if value is None else f"{value / unit:,.{digits}f}"


def spread(found: Outcome) -> list[str]:
    """Every round, so that a reader sees how steady the medians are."""
    lines = [row("target", "scenario", "req/s", "p99 ms"), row("---", "---", "---", "---")]
    for name, scenarios in found.samples.items():
        for scenario, rounds in scenarios.items():
            speeds = " ".join(cell(sample.per_second) for sample in rounds)
            tails = " ".join(cell(sample.p99_us, 1e3, 1) for sample in rounds)
            lines.append(row(name, scenario, speeds, tails))
    return lines


def faults(found: Outcome) -> list[str]:
    """Refusals, broken connections and streams that were shorter than the upstream's own."""
    lines = []
    whole = found.bytes_each("direct", "stream-c32")
    for name, scenarios in found.samples.items():
        for scenario, rounds in scenarios.items():
            refused = sum(sample.refused for sample in rounds)
            broken = sum(sample.broken for sample in rounds)
            if refused or broken:
                lines.append(f"{name}, {scenario}: {refused} refused, {broken} broken connections")
        got = found.bytes_each(name, "stream-c32")
        if whole and got is not None and got < whole * 0.9:
            lines.append(f"{name}: its streams have {got / whole:.0%} of the upstream's bytes")
    return lines


def notes(found: Outcome) -> list[str]:
    lines = faults(found)
    if found.usage_records:
        kept, answered = found.usage_records
        lines.append(f"usage records: {kept:,} kept for {answered:,} requests answered under load")
    plain, stream = (found.busiest_cpu_us(OURS, name) for name in ("unary-c32", "stream-c32"))
    if plain is not None and stream is not None:
        lines.append(f"CPU of the relay alone: {plain:.0f} us a request, {stream:.0f} us a stream")
    if held := found.open_streams:
        before, after = held.rss_before_bytes / 1e6, held.rss_with_bytes / 1e6
        lines.append(
            f"open streams: {held.count:,} opened in {held.opening_s:.1f} s; "
            f"relay {before:.1f} MB before, {after:.1f} MB with them; a new request among them "
            f"answered in {held.new_request_ms:.1f} ms (median of {NEW_REQUESTS})"
        )
    return lines + [f"left out: {name}: {why}" for name, why in found.left_out.items()]


def page(found: Outcome) -> str:
    facts = found.machine | found.conditions
    lines = [
        f"# Load run of {found.date}",
        "",
        *(f"- {name}: {value}" for name, value in facts.items()),
        "",
        "Medians of the rounds. `RSS`: the most that the busiest process held after a load; `all`:",
        "the whole tree at the end, shared pages once. `direct` is the upstream alone.",
        "",
        *table(found),
        "",
        "## Bars",
        "",
        row("what", "wanted", "measured", ""),
        row("---", "--:", "--:", "---"),
        *(bar.row() for bar in bars(found)),
        "",
        "## Notes",
        "",
        *(f"- {note}" for note in notes(found)),
        "",
        "## Every round",
        "",
        *spread(found),
        "",
    ]
    return "\n".join(lines)


def keep(found: Outcome, folder: Path) -> Path:
    """Writes the page and the raw samples; the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    front = "" if found.front == "granian" else f"-{found.front}"
    stem = folder / f"{found.date}-{found.machine['kind']}{front}"
    raw = json.dumps(dataclasses.asdict(found), indent=1)
    stem.with_suffix(".json").write_text(raw + "\n", "utf-8")
    stem.with_suffix(".md").write_text(page(found), "utf-8")
    return stem.with_suffix(".md")


def write_readme(found: Outcome, readme: Path, kept: Path) -> None:
    """Puts the table and its conditions between the markers of the README."""
    head, begin, rest = readme.read_text("utf-8").partition(README_BEGIN)
    _, end, tail = rest.partition(README_END)
    if not (begin and end):
        raise ValueError(f"{readme.name} lacks {README_BEGIN} or {README_END}")
    where = kept.relative_to(readme.parent)
    machine = f"{found.machine['processor']}, {found.machine['cores']} cores shared by everything"
    block = [
        begin,
        *table(found),
        "",
        f"{found.date}, {machine}; rounds: {found.conditions['rounds']}.",
        f"Versions, commands, bars and every round: [{where}]({where}).",
        end,
    ]
    readme.write_text(head + "\n".join(block) + tail, "utf-8")
