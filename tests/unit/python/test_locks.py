"""The lock files name one registry and a hash for each package; crates follow the rules of `deny.toml`."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
SUPPORT = ROOT / "tests" / "support"
CRATES = "registry+https://github.com/rust-lang/crates.io-index"
RULES = tomllib.loads((ROOT / "deny.toml").read_text())
LOCKS = ("Cargo.lock", "benches/load/upstream/Cargo.lock")


def crates(lock: str) -> list[dict[str, Any]]:
    """The packages of a lock file that come from elsewhere."""
    packages = tomllib.loads((ROOT / lock).read_text())["package"]
    return [package for package in packages if "source" in package]


def numbers(version: str) -> tuple[int, ...]:
    """`1.2.3+build` as numbers that can be compared."""
    return tuple(int(part) for part in re.split(r"[+-]", version)[0].split("."))


def is_allowed(license_: str, allowed: set[str]) -> bool:
    """Whether a license expression can be met by allowed licenses. `AND` binds closer than `OR`."""
    license_ = re.sub(r"\s*/\s*", " OR ", license_)
    while inner := re.search(r"\(([^()]*)\)", license_):
        met = "MIT" if is_allowed(inner[1], allowed) else "refused"
        license_ = license_.replace(inner[0], met)
    return any(
        all(each.strip() in allowed for each in choice.split(" AND "))
        for choice in license_.split(" OR ")
    )


@pytest.mark.parametrize("lock", LOCKS)
def test_crates_come_from_one_registry_with_a_checksum(lock: str) -> None:
    assert [each for each in crates(lock) if each["source"] != CRATES] == []
    assert [each for each in crates(lock) if not each.get("checksum")] == []


@pytest.mark.parametrize("lock", LOCKS)
def test_no_crate_has_a_version_with_an_advisory(lock: str) -> None:
    locked = [(package["name"], numbers(package["version"])) for package in crates(lock)]
    for rule in RULES["bans"]["deny"]:
        name, _, fixed = rule["crate"].partition("@<")
        old = [version for crate, version in locked if crate == name and version < numbers(fixed)]
        assert old == [], f"{name}: {rule['reason']}"


def test_a_crate_with_several_versions_is_listed_with_its_reason() -> None:
    locked = [(package["name"], package["version"]) for package in crates("Cargo.lock")]
    skipped = {rule["crate"] for rule in RULES["bans"]["skip"]}
    assert skipped <= {f"{name}@{version}" for name, version in locked}, "a rule is out of date"
    others = Counter(name for name, version in locked if f"{name}@{version}" not in skipped)
    assert [name for name, count in others.items() if count > 1] == []


def test_licenses_of_crates_are_allowed() -> None:
    command = ["cargo", "metadata", "--offline", "--locked", "--format-version", "1"]
    command += ["--filter-platform", "x86_64-unknown-linux-gnu"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, timeout=60)
    allowed = set(RULES["licenses"]["allow"])
    packages = json.loads(found.stdout)["packages"]
    refused = {
        package["name"]: package["license"]
        for package in packages
        if not is_allowed(package["license"] or "none", allowed)
    }
    assert refused == {}


@pytest.mark.parametrize(
    "lock", sorted((ROOT / "requirements").glob("*.txt")), ids=lambda p: p.stem
)
def test_python_packages_have_a_version_and_a_hash(lock: Path) -> None:
    entries = re.split(r"\n(?=[A-Za-z0-9])", re.sub(r"(?m)^\s*#.*\n", "", lock.read_text()))
    assert len(entries) > 0
    for entry in entries:
        assert re.match(r"[\w.\[\],-]+==\S+", entry), entry
        assert "--hash=sha256:" in entry, entry


@pytest.mark.parametrize(
    "folder",
    [SUPPORT / "node", *sorted((SUPPORT / "node_tools").iterdir())],
    ids=lambda folder: folder.name,
)
def test_node_packages_have_a_hash(folder: Path) -> None:
    packages = json.loads((folder / "package-lock.json").read_text())["packages"]
    without = [name for name, each in packages.items() if name and "integrity" not in each]
    assert without == []
