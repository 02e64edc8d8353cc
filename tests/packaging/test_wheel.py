"""What a user installs: one wheel for every Python from 3.11 on, and an archive that makes it too.

Built with the profile of daily work, so that it shares what `make test` compiled; a release
differs in optimisation only.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tarfile
import tomllib
import urllib.error
import urllib.request
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.polling import eventually

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"},
    "MATURIN_PEP517_ARGS": f"--profile {os.environ.get('PROFILE', 'fast')}",
    "CARGO_TARGET_DIR": str(ROOT / "target"),
}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def build_wheel(source: Path, folder: Path) -> Path:
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, source)
    (wheel,) = folder.glob("*.whl")
    return wheel


def files_of(wheel: Path) -> set[str]:
    """What a wheel installs, without the list of its own files."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith(("/RECORD", "/"))}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive")
    run(sys.executable, "-m", "build", "--sdist", "--outdir", folder)
    (archive,) = folder.glob("*.tar.gz")
    return archive


def test_one_wheel_serves_every_python_from_3_11(wheel: Path) -> None:
    assert re.fullmatch(r"fairlead-[0-9.]+-cp311-abi3-[a-z0-9_.]+\.whl", wheel.name)


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    """Migrations, catalogues and the types marker are data, and easily left behind."""
    tracked = run("git", "ls-files", "--cached", "python/fairlead").split()

    assert {name.removeprefix("python/") for name in tracked} <= files_of(wheel)
    assert "fairlead/_core.abi3.so" in files_of(wheel)


def test_the_wheel_holds_nothing_of_a_checkout(wheel: Path) -> None:
    strangers = {name for name in files_of(wheel) if not name.startswith("fairlead")}

    assert not strangers
    assert not [name for name in files_of(wheel) if "__pycache__" in name]


def test_the_archive_holds_what_a_build_needs(archive: Path) -> None:
    with tarfile.open(archive) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}

    crates = {f"rust/{crate}/Cargo.toml" for crate in ("core", "dialect", "engine", "py")}
    assert crates | {"Cargo.toml", "Cargo.lock", "pyproject.toml", "README.md", "LICENSE"} <= names


def test_the_archive_makes_the_same_wheel(wheel: Path, archive: Path, tmp_path: Path) -> None:
    from_archive = build_wheel(archive, tmp_path)

    assert from_archive.name == wheel.name
    assert files_of(from_archive) == files_of(wheel)


def test_the_wheel_serves_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    """The demo's own curl line is run as it is printed; SIGTERM ends with exit code 0."""
    home = tmp_path / "venv"
    venv.create(home, with_pip=True)
    pip = [home / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
    run(*pip, "install", "--require-hashes", "-r", ROOT / "requirements" / "run.txt")
    run(*pip, "install", "--no-deps", "--no-index", wheel)
    run(*pip, "check", cwd=tmp_path)

    with serving(home / "bin" / "fairlead", tmp_path) as (process, base, output):
        with urllib.request.urlopen(f"{base}/healthz", timeout=10) as answer:
            assert answer.status == 200
        curl = next(line for line in output.read_text().splitlines() if line.startswith("curl "))
        told = subprocess.run(["sh", "-c", curl], capture_output=True, text=True, timeout=30)
        assert '"choices"' in told.stdout, (curl, told.stdout, told.stderr)
        process.send_signal(signal.SIGTERM)

        assert process.wait(60) == 0


PLAIN_CASES = (
    (("serve", "--demo", "--port", "20999"), {}, "standin"),
    (("standin", "--port", "20999"), {}, "standin"),
    (
        ("serve", "--port", "20999"),
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"},
        "telemetry",
    ),
)


def test_a_plain_installation_says_what_its_parts_need(wheel: Path, tmp_path: Path) -> None:
    """With what the package itself depends on alone: one line with the command, and never a traceback."""
    home = tmp_path / "plain"
    venv.create(home, with_pip=True)
    pip = [home / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
    # The versions of a deployment, without what only the extras need.
    run(*pip, "install", "--constraint", constraints(tmp_path), wheel)
    program = str(home / "bin" / "fairlead")
    for arguments, environment, extra in PLAIN_CASES:
        ended = subprocess.run(
            [program, *arguments, "--data-dir", str(tmp_path / "data")]
            if arguments[0] == "serve"
            else [program, *arguments],
            env=ENVIRONMENT | environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        (line,) = ended.stderr.splitlines()
        assert (ended.returncode, ended.stdout) == (2, ""), ended
        assert f"`{install_command(home, extra)}`" in line
    with serving(Path(program), tmp_path, demo=False) as (_, base, _output):
        findings = run(program, "doctor", "--no-providers", "--data-dir", tmp_path / "data")
        for extra in ("standin", "browser", "vectors", "telemetry"):
            assert f"{extra} is not installed; `{install_command(home, extra)}`" in findings
        token = (tmp_path / "data" / "cli-token").read_text().strip()
        change = urllib.request.Request(
            f"{base}/api/settings",
            data=b'{"vectorCacheEnabled": true}',
            headers={"x-gateway-cli-token": token, "content-type": "application/json"},
            method="PATCH",
        )
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(change, timeout=20)
        message = json.loads(refused.value.read())["error"]["message"]
        assert install_command(home, "vectors") in message


def install_command(home: Path, extra: str) -> str:
    """The command for the Python of an environment, from what this checkout declares."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    python = home / "bin" / "python"
    written = run(
        python, "-c", f"import fairlead.process.extra as e; print(e.install_command({extra!r}))"
    )
    words = shlex.split(written)
    assert words[:4] == [str(python), "-m", "pip", "install"]
    assert len(words[4:]) == len(declared["optional-dependencies"][extra])
    return written.strip()


def constraints(folder: Path) -> Path:
    """The pinned versions, without their hashes: a wheel that was just built has none."""
    pinned = (ROOT / "requirements" / "run.txt").read_text()
    target = folder / "constraints.txt"
    names = re.findall(r"^([\w.-]+==[^ \\\n;]+)", pinned, re.MULTILINE)
    target.write_text("\n".join(names) + "\n")
    return target


@contextmanager
def serving(
    command: Path, folder: Path, *, demo: bool = True
) -> Iterator[tuple[subprocess.Popen[bytes], str, Path]]:
    """`fairlead serve` on a free port, with the demo or without, its output in a file; ended whatever happens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    output = folder / "output"
    arguments = ["serve", "--port", str(port), "--data-dir", str(folder / "data")]
    if demo:
        arguments.append("--demo")
    ready = "\ncurl " if demo else "fairlead ready "
    with output.open("wb") as out:
        process = subprocess.Popen(
            [command, *arguments],
            cwd=folder,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        eventually(
            lambda: ready in output.read_text() or process.poll() is not None,
            "it is ready",
            within_s=60,
        )
        yield process, f"http://127.0.0.1:{port}", output
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
