"""What a referee issued. Only its own signatures are valid, as at the real vendors."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
from dataclasses import dataclass, field
from typing import Any, Final

# How the vendors' signatures begin.
OPENINGS: Final = {"openai": "gAAAAA", "anthropic": "EuYB"}


@dataclass
class Ledger:
    """Signatures and ids of one referee, by vendor."""

    signatures: dict[tuple[str, str], str] = field(default_factory=dict)
    """The digest of the conversation for which each signature was issued."""
    accepts_all: bool = False
    """Every signature is valid, for requests that were recorded at real vendors."""
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def number(self) -> int:
        return next(self._numbers)

    def sign(self, vendor: str, prefix: Any) -> str:
        """A new signature for reasoning that follows `prefix`."""
        number = base64.b64encode(f"{vendor} {self.number():06d}".encode()).decode()
        signature = OPENINGS.get(vendor, "") + number
        self.signatures[vendor, signature] = digest(prefix)
        return signature

    def has_issued(self, vendor: str, signature: str) -> bool:
        return self.accepts_all or (vendor, signature) in self.signatures

    def is_bound_to(self, vendor: str, signature: str, prefix: Any) -> bool:
        return self.accepts_all or self.signatures[vendor, signature] == digest(prefix)


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
