"""No field of a record is stored for nobody: each has a reader, or is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.field_readers import LABELS, PAGE, page, read_fields
from tests.support.field_samples import RECORDS, STEPS, RecordSamples
from tests.support.management import Management
from tests.support.rust_structs import RUST, Sources


def _paths(record: RecordSamples) -> set[str]:
    paths = set(record.paths())
    if record.name == "combos":
        paths.discard("models")
        paths |= {f"models.{info.alias}" for step in STEPS for info in step.model_fields.values()}
    return paths


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_every_field_is_tried_and_stands_on_the_page_with_its_reader(record: RecordSamples) -> None:
    paths = _paths(record)
    assert set(record.samples) == paths
    section = (
        PAGE.read_text(encoding="utf-8").split(f"## {LABELS[record.name]}\n")[1].split("\n## ")[0]
    )
    rows = re.findall(r"^\| `([^`]+)` \| (.*) \| (.*) \|$", section, re.MULTILINE)
    assert {name for name, _, _ in rows} == paths, "run `make reference`"
    assert [name for name, _, readers in rows if "**nothing**" in readers] == []


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.anyio
async def test_the_page_is_what_the_code_does(management: Management) -> None:
    fields = await read_fields(management)
    unread = {f"{each.record}.{each.path}": each.unread for each in fields if not each.is_read}
    assert unread == {}
    assert PAGE.read_text(encoding="utf-8") == page(fields), "run `make reference`"


def test_a_member_that_no_code_reads_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "core" / "src"
    folder.mkdir(parents=True)
    (folder / "snapshot.rs").write_text(
        "pub struct Key {\n    pub id: String,\n    pub alone: bool,\n    pub name: String,\n"
        "    /// Said of a key, and read of a model alone.\n    pub shared: bool,\n}\n"
        "pub struct Model {\n    pub shared: bool,\n}\n",
        encoding="utf-8",
    )
    (folder / "policy.rs").write_text(
        "fn judge(key: &Key, model: &Model) -> bool {\n    key.id.is_empty() && model.shared\n}\n"
        "// key.alone is said in a comment only\n"
        "fn set(key: &mut Key) {\n    key.name = String::new();\n}\n"
        "#[cfg(test)]\nmod tests {\n    fn t(key: &Key) -> bool { key.alone }\n}\n",
        encoding="utf-8",
    )
    sources = Sources(tmp_path)
    key = sources.structs["Key"]
    readers = {name: sources.readers(key, name) for name in key.members}
    assert readers == {"id": [folder / "policy.rs"], "alone": [], "name": [], "shared": []}
    assert sources.member("Key", "no_such_member") is None
    assert Sources(RUST).member("Key", "forced_model") is not None
