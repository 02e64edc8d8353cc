"""The commands `list`, `show`, `edit` and `delete` of a collection, which differ only in their words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import typer

from fairlead.cli.assignment import Assignments, SecretFile, fields_from
from fairlead.cli.collection import Collection
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url


@dataclass(frozen=True, slots=True)
class RecordCommands:
    """Adds commands for the records of `collection` to `app`. Each takes its help text."""

    app: typer.Typer
    collection: Collection
    record: Any
    """The annotation of the argument that names a record, with the metavar that the help shows."""

    def add_list(self, summary: str) -> None:
        """`list`: prints all records."""
        collection = self.collection

        def list_(data_dir: DataDir = DATA_DIR, url: Url = None, as_json: Json = False) -> None:
            collection.print_list(url, data_dir, as_json=as_json)

        self._add("list", summary, list_)

    def add_show(self, summary: str) -> None:
        """`show`: prints every field of one record."""
        collection = self.collection

        def show(
            record: str, data_dir: DataDir = DATA_DIR, url: Url = None, as_json: Json = False
        ) -> None:
            collection.show(record, url, data_dir, as_json=as_json)

        self._add("show", summary, show)

    def add_edit(self, summary: str) -> None:
        """`edit`: changes the named fields of one record."""
        collection = self.collection

        def edit(
            record: str,
            assignments: Assignments = None,
            from_file: SecretFile = None,
            data_dir: DataDir = DATA_DIR,
            url: Url = None,
            as_json: Json = False,
        ) -> None:
            fields = fields_from(assignments, from_file)
            collection.change(record, fields, url, data_dir, as_json=as_json)

        self._add("edit", summary, edit)

    def add_delete(self, summary: str, name: str = "delete", verb: str = "Deleted") -> None:
        """Deletes one record. `verb` begins the confirmation."""
        collection = self.collection

        def delete(
            record: str, data_dir: DataDir = DATA_DIR, url: Url = None, as_json: Json = False
        ) -> None:
            collection.delete(record, url, data_dir, as_json=as_json, verb=verb)

        self._add(name, summary, delete)

    def _add(self, name: str, summary: str, command: Callable[..., None]) -> None:
        if "record" in command.__annotations__:
            command.__annotations__["record"] = self.record
        self.app.command(name, help=summary)(command)
