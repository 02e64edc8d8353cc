"""In a real mount namespace that looks like a container: nothing is written where it would be gone with it.

One home lies on the namespace's own root, another is mounted from outside, a third is a file system in memory.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.coding_tools.container import is_container, is_from_host, mount_table
from tests.support.coding_tools import standin_prefix
from tests.support.processes import Gateway

ROOT = Path(__file__).parents[2]


def namespace_works() -> bool:
    if shutil.which("unshare") is None:
        return False
    return (
        subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode == 0
    )


pytestmark = pytest.mark.skipif(
    not namespace_works(), reason="needs unshare with user and mount namespaces"
)

MOUNTS = """
set -e
home=$1; shift
mkdir -p $home/own $home/host-source $home/mounted $home/memory $home/partly/.codex
mount --bind $home/host-source $home/mounted
mount --bind $home/host-source $home/partly/.codex
mount -t tmpfs none $home/memory
exec "$@"
"""


def in_container(home: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in a mount namespace with the sign of a container."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FAIRLEAD_")}
    clean.pop("GATEWAY_ALLOW_CONTAINER_CONFIG_WRITE", None)
    return subprocess.run(
        ["unshare", "-rm", "sh", "-c", MOUNTS, "sh", str(home), *command],
        cwd=ROOT,
        env=clean | {"container": "podman"} | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def setup(gateway: Gateway, home: Path, config_home: str, *flags: str, **environment: str):
    command = [sys.executable, "-m", "fairlead", "setup-claude", "--yes", "--model", "demo/standin"]
    command += ["--remote", gateway.url, "--api-key", gateway.key, *flags]
    return in_container(
        home,
        *command,
        CLI_CONFIG_HOME=str(home / config_home),
        FAIRLEAD_DATA_DIR=str(home / "data"),
        **environment,
    )


def test_a_container_is_told_from_a_machine_and_a_mount_from_its_own_files(tmp_path: Path) -> None:
    program = """
import json, sys
from pathlib import Path
from fairlead.coding_tools.container import is_container, is_from_host, mount_table
from fairlead.coding_tools.environment import container_marks
home, mounts = Path(sys.argv[1]), mount_table()
print(json.dumps([is_container(container_marks())] + [
    is_from_host(home / name / ".x/y.json", mounts) for name in ("own", "mounted", "memory")]))
"""
    ended = in_container(tmp_path, sys.executable, "-c", program, str(tmp_path))
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == [True, False, True, False]


@pytest.mark.parametrize("place", ["own", "memory"])
def test_a_setup_in_a_container_exits_with_two_and_says_what_to_do(
    gateway: Gateway, tmp_path: Path, place: str
) -> None:
    ended = setup(gateway, tmp_path, place)
    assert ended.returncode == 2, ended
    assert "fairlead setup-claude --remote" in ended.stderr
    for way in (
        "CLI_CONFIG_HOME",
        "--allow-container-write",
        "GATEWAY_ALLOW_CONTAINER_CONFIG_WRITE",
    ):
        assert way in ended.stderr
    assert not list((tmp_path / "own").iterdir())
    assert not (tmp_path / "data").exists()


def test_a_preview_works_in_a_container(gateway: Gateway, tmp_path: Path) -> None:
    ended = setup(gateway, tmp_path, "own", "--dry-run", "--json")
    assert ended.returncode == 0, ended.stderr
    (file,) = json.loads(ended.stdout)["files"]
    assert file["path"] == str(tmp_path / "own/.claude/settings.json")
    assert gateway.key not in ended.stdout
    assert not list((tmp_path / "own").iterdir())


@pytest.mark.parametrize(
    ("place", "flags", "environment"),
    [
        ("mounted", [], {}),
        ("own", ["--allow-container-write"], {}),
        ("own", [], {"GATEWAY_ALLOW_CONTAINER_CONFIG_WRITE": "true"}),
    ],
    ids=("mounted from the host", "by flag", "by environment"),
)
def test_a_setup_in_a_container_writes_where_it_may(
    gateway: Gateway,
    standin_url: str,
    tmp_path: Path,
    place: str,
    flags: list[str],
    environment: dict[str, str],
) -> None:
    model = f"{standin_prefix(gateway, standin_url)}/standin"
    ended = setup(gateway, tmp_path, place, "--model", model, *flags, **environment)
    assert ended.returncode == 0, ended.stderr
    assert "It works" in ended.stdout
    written = tmp_path / ("host-source" if place == "mounted" else place) / ".claude/settings.json"
    assert json.loads(written.read_text())["env"]["ANTHROPIC_BASE_URL"] == gateway.url


@pytest.mark.parametrize(("flags", "code"), [((), 2), (("--allow-container-write",), 0)])
def test_config_set_of_a_tool_keeps_to_the_same_guard(
    gateway: Gateway, standin_url: str, tmp_path: Path, flags: tuple[str, ...], code: int
) -> None:
    model = f"{standin_prefix(gateway, standin_url)}/standin"
    command = [sys.executable, "-m", "fairlead", "config", "set", "claude", "--model", model]
    command += ["--remote", gateway.url, "--api-key", gateway.key, *flags]
    places = {name: str(tmp_path / name) for name in ("own", "data")}
    ended = in_container(
        tmp_path, *command, CLI_CONFIG_HOME=places["own"], FAIRLEAD_DATA_DIR=places["data"]
    )
    assert ended.returncode == code, ended
    assert (tmp_path / "own/.claude/settings.json").exists() == (code == 0)


def test_the_route_answers_422_and_writes_nothing(tmp_path: Path) -> None:
    """A whole gateway within the namespace, asked from within: one tool's folder is mounted, others' are not."""
    program = """
import json, sys
from pathlib import Path
from tests.support.processes import start_gateway
home = Path(sys.argv[1])
(home / "run").mkdir()
found = {}
with start_gateway(home / "run", CLI_CONFIG_HOME=str(home / "partly")) as gateway:
    for tool in ("codex", "claude", "goose"):
        body = {"tool": tool, "model": "p/m", "apiKey": "sk-fl-canary"}
        for name, more in (("preview", {"dryRun": True}), ("apply", {})):
            answer = gateway.admin.post("/api/cli-tools/apply", json={**body, **more})
            found[f"{name} {tool}"] = [answer.status_code, answer.json()]
print(json.dumps(found))
"""
    ended = in_container(
        tmp_path, sys.executable, "-c", program, str(tmp_path), PYTHONPATH=str(ROOT)
    )
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    for tool in ("claude", "goose"):
        status, preview = found[f"preview {tool}"]
        assert (status, preview["dryRun"]) == (200, True)
        assert preview["configPath"].startswith(str(tmp_path / "partly"))
        assert "sk-fl-canary" not in json.dumps(preview)
        status, refused = found[f"apply {tool}"]
        assert (status, refused["containerEphemeralTarget"]) == (422, True)
        assert "container" in refused["error"]["message"]
        assert str(tmp_path) not in json.dumps(refused)
        assert ("hostSetupCommand" in refused) is (tool == "claude")
    command = found["apply claude"][1]["hostSetupCommand"]
    assert command.startswith("fairlead setup-claude --remote http://127.0.0.1:")
    assert found["apply codex"][0] == 200
    assert (tmp_path / "host-source/fairlead.config.toml").exists()
    left = [path for path in (tmp_path / "partly").rglob("*") if path.is_file()]
    assert left == [], "what was mounted there is seen in the namespace alone"


DOCKER = """\
730 729 0:55 / / rw - overlay overlay rw
741 730 8:1 /var/lib/docker/containers/x/hosts /etc/hosts rw - ext4 /dev/sda1 rw
742 730 8:1 /home/ann/.codex /home/dev/.codex rw - ext4 /dev/sda1 rw
743 730 8:1 /var/lib/docker/volumes/v/_data /home/dev/.claude rw - ext4 /dev/sda1 rw
744 730 0:61 / /home/dev/with\\040blank rw shared:1 - ext4 /dev/sdb rw
"""


@pytest.mark.parametrize(
    ("path", "lasts"),
    [
        ("/home/dev/.codex/config.toml", True),
        ("/home/dev/.claude/settings.json", False),
        ("/home/dev/.qwen/settings.json", False),
        ("/home/dev/.codexx/config.toml", False),
        ("/home/dev/with blank/x", True),
    ],
)
def test_the_mount_table_of_a_container(path: str, lasts: bool) -> None:
    assert is_from_host(Path(path), mount_table(DOCKER)) is lasts


def test_containers_are_known_by_their_marks(tmp_path: Path) -> None:
    (tmp_path / "proc/1").mkdir(parents=True)
    (tmp_path / "proc/1/cgroup").write_text("0::/user.slice\n")
    assert not is_container({}, tmp_path)
    assert is_container({"container": "podman"}, tmp_path)
    assert is_container({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, tmp_path)
    (tmp_path / "proc/1/cgroup").write_text("0::/kubepods/besteffort/pod1\n")
    assert is_container({}, tmp_path)
    (tmp_path / "proc/1/cgroup").unlink()
    (tmp_path / ".dockerenv").touch()
    assert is_container({}, tmp_path)
