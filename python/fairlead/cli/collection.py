"""Records of one kind in the management API, as the commands list, find, make and delete them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from fairlead.cli.failure import CommandFailed
from fairlead.cli.output import print_message, show_json, show_table
from fairlead.text.near_names import did_you_mean

if TYPE_CHECKING:
    from fairlead.cli.instance import Instance

_NO_FIELDS: Final = "No valid fields to update"
"""How the API refuses a change in which it knows no field."""

Record = dict[str, Any]
Column = str | Callable[[Record], Any]
"""A field of the record, or a function that makes the cell from it."""


@dataclass(frozen=True, slots=True)
class Collection:
    """One list of the management API."""

    path: str
    key: str
    """The field of the API's answer that holds the list."""
    kind: str
    """One record's name in messages."""
    columns: Mapping[str, Column]
    """The table's columns by their headings."""
    empty: str
    """Printed in place of a table without rows."""
    wrapper: str | None = None
    """The field of the API's answer that holds one record, if the answer has other fields."""
    change_by: str = "put"
    """How the API changes what is sent of a record: `put` or `patch`."""
    id_in_query: bool = False
    """Whether the API takes the id of a record to delete as a query parameter."""
    label: str = "name"
    """The field by which people know a record; next to its id, the one in confirmations."""

    def records(self, instance: Instance) -> list[Record]:
        """All records, page after page."""
        return instance.list_all(self.path, self.key)

    def find(self, instance: Instance, wanted: str) -> Record:
        """The record with this label, id or name, where only one has it. Raises `CommandFailed`."""
        records = self.records(instance)
        if self.label != "name":
            labelled = [record for record in records if record[self.label] == wanted]
            if len(labelled) == 1:
                return labelled[0]
        found = [record for record in records if record["id"] == wanted]
        found = found or [record for record in records if record["name"] == wanted]
        if not found:
            known = {str(record[field]) for record in records for field in (self.label, "name")}
            near = did_you_mean(wanted, known)
            raise CommandFailed(f"there is no {self.kind} with the id or name {wanted}.{near}")
        if len(found) > 1:
            raise CommandFailed(
                f"{len(found)} {self.kind}s have the name {wanted}: name one by its id."
            )
        return found[0]

    def print_records(self, records: Sequence[Record], *, as_json: bool) -> None:
        """Prints records as a table, or as the API lists them."""
        self.print_answer({self.key: records, "total": len(records)}, as_json=as_json)

    def print_answer(self, answer: Record, *, as_json: bool) -> None:
        """Prints the records of a list that the API sent as a table, or what it sent."""
        if as_json:
            show_json(answer)
            return
        records = answer[self.key]
        rows = [[_cell(record, column) for column in self.columns.values()] for record in records]
        show_table(list(self.columns), rows, empty=self.empty)

    def print_list(self, url: str | None, data_dir: Path, *, as_json: bool) -> None:
        """Reads all records of the running instance and prints them."""
        # Imported when it is needed: its HTTP client would slow `--help` down.
        from fairlead.cli.instance import Instance

        with Instance(url, data_dir) as instance:
            records = self.records(instance)
        self.print_records(records, as_json=as_json)

    def create(self, url: str | None, data_dir: Path, body: Record) -> Record:
        """Posts a new record; the API's answer."""
        from fairlead.cli.instance import Instance

        with Instance(url, data_dir) as instance:
            return instance.post(self.path, body)

    def show(self, wanted: str, url: str | None, data_dir: Path, *, as_json: bool) -> None:
        """Prints every field of the record that people call `wanted`."""
        from fairlead.cli.instance import Instance

        with Instance(url, data_dir) as instance:
            found = self.find(instance, wanted)
        if as_json:
            show_json(found)
        else:
            rows = [[name, _field(value)] for name, value in found.items()]
            show_table(["field", "value"], rows, empty="")

    def change(
        self, wanted: str, fields: Record, url: str | None, data_dir: Path, *, as_json: bool
    ) -> None:
        """Changes fields of the record that people call `wanted`, and says which it was."""
        from fairlead.cli.instance import Instance

        with Instance(url, data_dir) as instance:
            record = self.find(instance, wanted)
            path = f"{self.path}/{record['id']}"
            send = instance.put if self.change_by == "put" else instance.patch
            try:
                answer = send(path, fields)
            except CommandFailed as refused:
                raise self._explained(refused, fields, record) from None
        if as_json:
            show_json(answer)
            return
        changed = answer if self.wrapper is None else answer[self.wrapper]
        print_message(f"Changed {changed[self.label]} ({changed['id']}).")

    def _explained(self, refused: CommandFailed, fields: Record, record: Record) -> CommandFailed:
        """The refusal of a change; where no field was valid, with the names that were not and those that are near."""
        unknown = [name for name in fields if name not in record]
        if not unknown or not refused.sentence.startswith(_NO_FIELDS):
            return refused
        near = did_you_mean(unknown[0], record)
        return CommandFailed(
            f"the {self.kind} has no field `{unknown[0]}`: `show` lists its fields.{near}"
        )

    def delete(
        self, wanted: str, url: str | None, data_dir: Path, *, as_json: bool, verb: str = "Deleted"
    ) -> None:
        """Deletes the record that people call `wanted` and prints which it was."""
        from fairlead.cli.instance import Instance

        with Instance(url, data_dir) as instance:
            found = self.find(instance, wanted)
            answer = instance.delete(f"{self.path}/{found['id']}")
        if as_json:
            show_json({"id": found["id"], self.label: found[self.label], **answer})
        else:
            print_message(f"{verb} {found[self.label]} ({found['id']}).")

    def delete_by_id(
        self,
        record_id: str,
        url: str | None,
        data_dir: Path,
        *,
        as_json: bool,
        verb: str = "Deleted",
    ) -> None:
        """Deletes the record with this id and prints the id."""
        from fairlead.cli.instance import Instance

        with Instance(url, data_dir) as instance:
            if self.id_in_query:
                answer = instance.delete(self.path, id=record_id)
            else:
                answer = instance.delete(f"{self.path}/{quote(record_id, safe='')}")
        if as_json:
            show_json({"id": record_id, **answer})
        else:
            print_message(f"{verb} {record_id}.")


def _field(value: Any) -> Any:
    """A field as a cell: lists and objects as JSON."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def _cell(record: Record, column: Column) -> Any:
    return record.get(column) if isinstance(column, str) else column(record)
