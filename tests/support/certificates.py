"""Certificates of their own for servers on loopback."""

from __future__ import annotations

import subprocess
from pathlib import Path


def make_certificate(path: Path, address: str) -> Path:
    """A key and a certificate of an IP address in one file, valid for two days and signed by itself."""
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
        f"-subj /CN={address} -addext subjectAltName=IP:{address}"
    ).split()
    subprocess.run(
        [*command, "-keyout", str(path), "-out", str(path.with_suffix(".crt"))],
        check=True,
        capture_output=True,
    )
    path.write_bytes(path.read_bytes() + path.with_suffix(".crt").read_bytes())
    return path
