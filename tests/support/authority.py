"""A certificate authority of its own, by the commands of docs/how-to/grow.md."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Issued:
    """A certificate and its key."""

    certificate: Path
    key: Path


class Authority:
    """Issues certificates from a folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self.certificate = folder / "ca.pem"
        _openssl(
            f"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj /CN=fairlead-nodes "
            f"-keyout {folder}/ca.key -out {self.certificate}"
        )

    def issue(self, name: str, subject_alt_name: str) -> Issued:
        """A certificate for a node, such as of `IP:127.0.0.1`."""
        at = self._folder / name
        _openssl(
            f"req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN={name} "
            f"-addext subjectAltName={subject_alt_name} -keyout {at}.key -out {at}.csr"
        )
        _openssl(
            f"x509 -req -in {at}.csr -CA {self.certificate} -CAkey {self._folder}/ca.key -CAcreateserial "
            f"-copy_extensions copy -days 825 -out {at}.pem"
        )
        return Issued(at.with_suffix(".pem"), at.with_suffix(".key"))


def _openssl(arguments: str) -> None:
    subprocess.run(["openssl", *arguments.split()], check=True, capture_output=True)
