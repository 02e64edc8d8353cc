"""The structs that the relay reads its snapshot into, and where the code reads their fields.

Read from the sources as text: a field that is public is not missed by the compiler when nobody reads it. A name that
several structs have counts only where the variable before it is known to hold this one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
RUST: Final = ROOT / "rust"

_STRUCT = re.compile(
    r"^(?:pub(?:\([a-z]+\))? )?struct (\w+)(?:<[^>]*>)? \{\n(.*?)^\}", re.MULTILINE | re.DOTALL
)
_ENUM = re.compile(
    r"^(?:pub(?:\([a-z]+\))? )?enum (\w+)(?:<[^>]*>)? \{\n(.*?)^\}", re.MULTILINE | re.DOTALL
)
# A type that another stands for while it is read.
_READ_AS = re.compile(
    r'#\[serde\((?:try_)?from = "(\w+)"\)\]\s*(?:#\[[^\]]*\]\s*)*pub struct (\w+)'
)
_TAGGED = re.compile(r'#\[serde\([^)]*tag = "(\w+)"[^)]*\)\]\s*(?:#\[[^\]]*\]\s*)*pub enum (\w+)')
_VARIANT = re.compile(r"^    (\w+) \{(.*?)\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(
    r"(?P<marks>(?:#\[[^\]]*\]\s*)*)(?:pub(?:\([a-z]+\))? )?(?P<name>\w+): (?P<type>[^,]+(?:<.*?>)?),"
)
_TESTS = re.compile(
    r"^#\[cfg\(test\)\]\n(?:#\[path = [^\n]*\n)?mod \w+ \{.*\Z", re.MULTILINE | re.DOTALL
)
_COMMENT = re.compile(r"//[^\n]*")
_WRAPPERS = ("Option", "Vec", "Arc", "Box")


@dataclass(frozen=True, slots=True)
class Member:
    """A field of a struct, or of a variant of an enum: its name in Rust, and what it holds."""

    name: str
    holds: str
    is_flat: bool = False
    is_tag: bool = False
    """Serde reads it, to know which variant the object is."""


@dataclass(slots=True)
class Struct:
    """One JSON object as it is read: members by their names in JSON. A disguise is read in its own file alone."""

    name: str
    path: Path
    members: dict[str, Member] = field(default_factory=dict)
    is_disguise: bool = False


class Sources:
    """The crates' code without its tests."""

    def __init__(self, folder: Path = RUST) -> None:
        self.code: dict[Path, str] = {}
        self.structs: dict[str, Struct] = {}
        self._readers: dict[tuple[str, str], list[Path]] = {}
        self._named: defaultdict[str, set[str]] = defaultdict(set)
        for path in sorted(folder.glob("*/src/**/*.rs")):
            if path.stem.endswith("tests") or path.stem in {"fuzz", "testing", "stream_fuzz"}:
                continue
            text = _COMMENT.sub("", _TESTS.sub("", path.read_text(encoding="utf-8")))
            self.code[path] = text
            self._take(path, text)
        for path, text in self.code.items():
            self._take_disguises(path, text)
        self._holders: dict[str, set[str]] = {}

    def _take(self, path: Path, text: str) -> None:
        found = [(name, body) for name, body in _STRUCT.findall(text)]
        for name, body in _ENUM.findall(text):
            found += [(name, f"{inside.rstrip()},") for _, inside in _VARIANT.findall(body)]
        for name, body in found:
            members = [
                Member(each["name"], each["type"].strip(), "flatten" in each["marks"])
                for each in _FIELD.finditer(body)
            ]
            for member in members:
                self._named[member.name].add(name)
            # Of structs of one name, the snapshot's own stand in the core.
            if (
                name in self.structs
                and "core" not in path.parts
                and self.structs[name].path != path
            ):
                continue
            struct = self.structs.setdefault(name, Struct(name, path))
            struct.path = path
            struct.members |= {member.name: member for member in members}

    def _take_disguises(self, path: Path, text: str) -> None:
        """Types that are read as another of their own file, and the tags of enums."""
        own = dict(_STRUCT.findall(text))
        for read_as, name in _READ_AS.findall(text):
            if read_as in own:
                members = {
                    each["name"]: Member(each["name"], each["type"])
                    for each in _FIELD.finditer(own[read_as])
                }
                self.structs[name] = Struct(name, path, members, is_disguise=True)
        for tag, name in _TAGGED.findall(text):
            if name in self.structs:
                self.structs[name].members.setdefault(tag, Member(tag, "tag", is_tag=True))

    def _holders_of(self, name: str) -> set[str]:
        """Names of variables and fields that are declared to hold this struct."""
        typed = re.compile(rf"\b(\w+): (?:&(?:'\w+ )?(?:mut )?)?(?:\w+<&?(?:'\w+ )?)*\[?&?{name}\b")
        own = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
        holders = {own, own.rpartition("_")[2]}
        for text in self.code.values():
            if name in text:
                holders.update(typed.findall(text))
        # One of a list.
        return holders | {each.removesuffix("s") for each in holders if len(each) > 2}

    def member(self, struct: str, name: str) -> tuple[Struct, Member] | None:
        """The field that a member of a JSON object is read into; `None` where nothing takes it."""
        known = self.structs.get(struct)
        if known is None:
            return None
        if name in known.members:
            return known, known.members[name]
        for flat in (each for each in known.members.values() if each.is_flat):
            found = self.member(core_type(flat.holds), name)
            if found is not None:
                return found
        return None

    def readers(self, struct: Struct, name: str) -> list[Path]:
        """The files that read the field, those that read it most first."""
        if (struct.name, name) not in self._readers:
            self._readers[struct.name, name] = self._find_readers(struct, name)
        return self._readers[struct.name, name]

    def _find_readers(self, struct: Struct, name: str) -> list[Path]:
        if struct.members[name].is_tag:
            return [struct.path]
        if struct.is_disguise:
            is_read = re.search(rf"\w\s*\.{name}\b(?!\s*\()", self.code[struct.path])
            return [struct.path] if is_read else []
        if struct.name not in self._holders:
            self._holders[struct.name] = self._holders_of(struct.name)
        holders = "|".join(sorted(self._holders[struct.name]))
        before = rf"(?:\b(?:{holders})(?:\(\))?\??(?:\[[^\]]*\])?)" if self._is_shared(name) else ""
        read = re.compile(rf"{before}\s*\.{name}\b(?!\s*(?:\(|=[^=]))")
        own = re.compile(rf"\bself\s*\.{name}\b(?!\s*(?:\(|=[^=]))")
        # A pattern that takes it apart; what makes one has values after colons.
        taken = re.compile(
            rf"(?:\b{struct.name}|::\w+) \{{[^{{}}:]*\b{name}\b[^{{}}:]*\}}\)*\s*(?:=>|=|\|)"
        )
        counts = {
            path: len(read.findall(text))
            + len(taken.findall(text))
            + (len(own.findall(text)) if path == struct.path else 0)
            for path, text in self.code.items()
            if name in text
        }
        files = [path for path, count in counts.items() if count]
        # Whoever declares it may only give it on.
        return sorted(files, key=lambda path: (path == struct.path, -counts[path], path))

    def _is_shared(self, name: str) -> bool:
        return len(self._named[name]) > 1


def core_type(text: str) -> str:
    """What a type holds: without references, options, lists and boxes."""
    text = text.strip().removeprefix("&").removeprefix("'static ")
    for wrapper in _WRAPPERS:
        if text.startswith(f"{wrapper}<"):
            return core_type(text[len(wrapper) + 1 : -1])
    return text.rpartition("::")[2] if "<" not in text else text


def mapped_type(text: str) -> str | None:
    """What a map of names holds; `None` for what is no map."""
    found = re.fullmatch(r"(?:Hash|BTree)Map<String, (.*)>", text)
    return None if found is None else core_type(found[1])
