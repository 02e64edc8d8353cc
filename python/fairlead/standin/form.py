"""A form with files, as Robyn hands it over: files by their own names, not by those of their fields."""

from dataclasses import dataclass
from typing import Any

from fairlead.standin.answer import InvalidAsk


@dataclass(frozen=True, slots=True)
class Form:
    """Fields by their names, files by theirs."""

    fields: dict[str, Any]
    files: dict[str, bytes]

    def file(self, field: str) -> tuple[str, bytes]:
        """Name and content of the first file; raises `InvalidAsk` about `field` where there is none."""
        for name, content in self.files.items():
            return name, bytes(content)
        raise InvalidAsk(f"'{field}' is required.", field)
