"""Which code reads each field of keys, connections, nodes, models and combos.

Each field is changed over the management API, and what that changes in the snapshot is followed into the structs of
the relay and to the code that reads them. `python -m tests.support.field_readers` writes `docs/reference/fields.md`;
`tests/unit/python/test_fields.py` fails for a field that nothing reads.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic.alias_generators import to_snake

from tests.support.field_samples import CONNECTION_ID, GROUP_ID, RECORDS, RecordSamples, Sample
from tests.support.management import Management, run_management
from tests.support.rust_structs import ROOT, Sources, core_type, mapped_type

PAGE: Final = ROOT / "docs" / "reference" / "fields.md"
HEAD: Final = """\
# Fields and where they are used

`make reference` writes this page. It changes each field of a record over the management API, looks for the change in
the relay's snapshot, and finds the code that reads it. A test fails for a field that no code reads. `refused`: a value
other than null is refused, with the reason.
"""
LABELS: Final = {
    "keys": "Keys (`/api/keys`)",
    "connections": "Connections (`/api/providers`)",
    "nodes": "Nodes (`/api/provider-nodes`)",
    "models": "Models (`/api/provider-models`)",
    "combos": "Combos (`/api/combos`)",
}
# Of every snapshot another.
_PASSING: Final = frozenset({"version", "compiled_at_ms", "revision"})
_FILES_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class FieldReaders:
    """A field, what it changes of the snapshot, and the files that read that.

    `unread` names members of the snapshot that nothing takes or reads.
    """

    record: str
    path: str
    places: tuple[str, ...]
    files: tuple[str, ...]
    refusal: str | None = None
    outside: str | None = None
    unread: tuple[str, ...] = ()

    @property
    def is_read(self) -> bool:
        """Whether something acts by it, or it cannot be set."""
        return self.refusal is not None or (bool(self.files) and not self.unread)


async def read_fields(management: Management) -> list[FieldReaders]:
    """Every field of every record, by trying it."""
    trial = await Trial.begin(management)
    sources = Sources()
    found = []
    for record in RECORDS:
        for path, sample in record.samples.items():
            found.append(await trial.try_field(sources, record, path, sample))
    return found


@dataclass(slots=True)
class Trial:
    """The records that the samples change, by the paths that change them."""

    management: Management
    at: dict[str, tuple[str, str]]
    ids: dict[str, str]
    provider: str

    @classmethod
    async def begin(cls, management: Management) -> Trial:
        """Makes one record of each kind."""
        ask = management.ask
        node = {
            "type": "openai-compatible",
            "name": "Lab",
            "prefix": "lab",
            "baseUrl": "http://127.0.0.1:8000/v1",
        }
        made = (await ask("POST", "/api/provider-nodes", node, expect=201))["node"]
        connection = {"provider": made["id"], "name": "one", "apiKey": "sk-a"}
        own = (await ask("POST", "/api/providers", connection, expect=201))["connection"]["id"]
        for model in ("m", "n"):
            body = {"provider": made["id"], "modelId": model}
            await ask("POST", "/api/provider-models", body, expect=201)
        key = await ask("POST", "/api/keys", {"name": "k"}, expect=201)
        steps = {"models": ["lab/m"]}
        for name in ("second", "third"):
            await ask("POST", "/api/combos", {"name": name, **steps}, expect=201)
        combo = await ask("POST", "/api/combos", {"name": "fast", **steps}, expect=201)
        at = {
            "keys": ("PATCH", f"/api/keys/{key['id']}"),
            "connections": ("PUT", f"/api/providers/{own}"),
            "nodes": ("PUT", f"/api/provider-nodes/{made['id']}"),
            "models": ("PUT", "/api/provider-models"),
            "combos": ("PUT", f"/api/combos/{combo.get('combo', combo)['id']}"),
        }
        group = await ask("POST", "/api/groups", {"name": "team"}, expect=201)
        ids = {CONNECTION_ID: own, GROUP_ID: group["id"]}
        return cls(management, at, ids, made["id"])

    async def try_field(
        self, sources: Sources, record: RecordSamples, path: str, sample: Sample
    ) -> FieldReaders:
        """Changes the field and follows what it changes."""
        if sample.after is None:
            return _outside(record, path, sample)
        before, _ = await self._send(record, path, sample, sample.before)
        after, refusal = await self._send(record, path, sample, sample.after)
        await self._send(record, path, sample, sample.before)
        if refusal is not None:
            return FieldReaders(record.name, path, (), (), refusal=refusal)
        places = tuple(sorted(set(_differences(before, after, ""))))
        if not places:
            return _outside(record, path, sample)
        files: list[str] = []
        unread = []
        for place in places:
            readers = _readers(sources, place)
            files += [each for each in readers if each not in files]
            if not readers:
                unread.append(place)
        return FieldReaders(
            record.name, path, places, tuple(files[:_FILES_SHOWN]), unread=tuple(unread)
        )

    async def _send(
        self, record: RecordSamples, path: str, sample: Sample, change: Any
    ) -> tuple[Any, str | None]:
        """The snapshot after a change, and why it was refused."""
        method, at = self.at[record.name]
        body = sample.others | (_defaults(record, path) if change is None else change)
        if record.name == "models":
            body |= {"provider": self.provider, "modelId": "m"}
        answer = await self.management.client.request(method, at, json=_with_ids(body, self.ids))
        if answer.status_code == 400 and change is sample.after:
            return None, self._without_ids(answer.json()["error"]["message"])
        assert answer.status_code == 200, f"{record.name} {path}: {answer.text}"
        return self.management.snapshot(), None

    def _without_ids(self, message: str) -> str:
        """Ids are other ones each time that the page is written."""
        for own in self.ids.values():
            message = message.replace(own, "<id>")
        return message


def _defaults(record: RecordSamples, path: str) -> dict[str, Any]:
    """A body that puts the field back to its default."""
    alias = path.partition(".")[0]
    info = next(each for each in record.body.model_fields.values() if each.alias == alias)
    if info.is_required():
        names = {"name": "k", "type": "openai-compatible", "prefix": "lab"}
        names["baseUrl"] = "http://127.0.0.1:8000/v1"
        return {alias: names[alias]}
    return {alias: info.get_default(call_default_factory=True)}


def _with_ids(value: Any, ids: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _with_ids(each, ids) for name, each in value.items()}
    if isinstance(value, list):
        return [_with_ids(each, ids) for each in value]
    return ids.get(value, value) if isinstance(value, str) else value


def _outside(record: RecordSamples, path: str, sample: Sample) -> FieldReaders:
    """A field that no snapshot has, with the files that name it."""
    alias = path.rpartition(".")[2]
    word = re.compile(rf"\b(?:{alias}|{to_snake(alias)})\b")
    named = tuple(
        file
        for file in sample.readers
        if word.search((ROOT / file).read_text(encoding="utf-8")) is not None
    )
    # Which record it is about needs no reader.
    is_name = sample.after is None and not sample.readers
    files = ("python/fairlead/gateway/providers/endpoint.py",) if is_name else named
    return FieldReaders(record.name, path, (), files, outside=sample.outside)


def _differences(one: Any, other: Any, path: str) -> Iterator[str]:
    """The places at which two snapshots differ: members by name, any element of a list as `[]`."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted(one.keys() | other.keys()):
            if name in _PASSING:
                continue
            at = f"{path}.{name}" if path else name
            if name in one and name in other:
                yield from _differences(one[name], other[name], at)
            elif one.get(name, other.get(name)) is not None:
                yield at
    elif isinstance(one, list) and isinstance(other, list):
        is_records = all(isinstance(each, dict) for each in (*one, *other))
        if is_records and len(one) == len(other):
            for mine, theirs in zip(one, other, strict=True):
                yield from _differences(mine, theirs, f"{path}[]")
        elif one != other:
            yield path
    elif one != other:
        yield path


def _readers(sources: Sources, place: str) -> list[str]:
    """The files that read a member of the snapshot, by its path."""
    struct = "Document"
    files: list[str] = []
    for part in place.replace("[]", "").split("."):
        held = mapped_type(struct)
        if held is not None:
            struct = held
            continue
        found = sources.member(struct, part)
        if found is None:
            # A type that code of its own reads has no members to follow.
            return files if struct not in sources.structs else []
        owner, member = found
        struct = core_type(member.holds)
        read = sources.readers(owner, member.name)
        files = [str(path.relative_to(ROOT)) for path in read]
        if not files:
            return []
    return files


def page(fields: list[FieldReaders]) -> str:
    """The reference page."""
    parts = [HEAD]
    for record in RECORDS:
        parts.append(f"\n## {LABELS[record.name]}\n\n| field | in the snapshot | read by |\n")
        parts.append("| --- | --- | --- |\n")
        parts += [_row(each) for each in fields if each.record == record.name]
    return "".join(parts)


def _row(found: FieldReaders) -> str:
    if found.refusal is not None:
        return f"| `{found.path}` | refused | {found.refusal} |\n"
    places = ", ".join(f"`{each}`" for each in found.places) or f"no: {found.outside}"
    files = ", ".join(f"`{each}`" for each in found.files) or "**nothing**"
    return f"| `{found.path}` | {places} | {files} |\n"


async def _write(target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with run_management(Path(folder)) as management:
            target.write_text(page(await read_fields(management)), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(_write(Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE))
