"""An engine in this process, with a key and a connection, as a relay worker has it."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from benches.micro.worker import Worker
from fairlead import _core

ROOT = Path(__file__).resolve().parents[2]
SECRET = bytes(32)
CONNECTION = "00000000-0000-4000-8000-000000000001"


@pytest.fixture(scope="session")
def upstream() -> Iterator[str]:
    """The load run's upstream; its base URL."""
    home = ROOT / "benches" / "load" / "upstream"
    build = ROOT / "target" / "upstream"
    command = ["cargo", "build", "--release", "--quiet", "--locked", "--target-dir", str(build)]
    subprocess.run([*command, "--manifest-path", str(home / "Cargo.toml")], check=True)
    process = subprocess.Popen(
        [build / "release" / "bench-upstream", "0"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield f"http://{process.stdout.readline().split()[1]}/v1"
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()


@pytest.fixture
def worker(upstream: str, tmp_path: Path) -> Iterator[Worker]:
    key, digest = _core.new_key()
    sealed = _core.seal(
        SECRET, CONNECTION, json.dumps({"api_key": "sk-up", "headers": {}}).encode()
    )
    snapshot = {
        "version": 1,
        "compiled_at_ms": 0,
        "settings": {"require_login": True},
        "local_token_hash": _core.hash_secret("local"),
        "keys": [{"id": "bench", "name": "bench", "hash": digest, "is_active": True}],
        "sessions": [],
        "connections": [
            {
                "id": CONNECTION,
                "name": "main",
                "provider": "up",
                "prefixes": ["up"],
                "dialect": "openai",
                "base_url": upstream,
                "auth": "bearer",
                "credentials_sealed": base64.b64encode(sealed).decode(),
                "priority": 1,
            }
        ],
        "models": [],
        "prices": [{"model": "up/mock", "input": 2500000, "output": 10000000}],
    }
    (tmp_path / "snapshot.json").write_text(json.dumps(snapshot), "utf-8")
    config = {
        "data_dir": str(tmp_path),
        "control_socket": str(tmp_path / "control.sock"),
        "link_token": "00",
        "secret_key": base64.b64encode(SECRET).decode(),
        "require_api_key": True,
        "loopback_only": True,
        "version": _core.version(),
    }
    engine = _core.Engine(json.dumps(config).encode())
    try:
        yield Worker(engine, key, tmp_path)
    finally:
        engine.stop()
