"""Completion as each shell asks for it, with names from the running gateway."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import clean_environment, fairlead, started_fairlead
from tests.support.processes import Gateway, Lane
from tests.support.upstream import reply


def offered(words: str, gateway: Gateway | None = None, shell: str = "bash") -> list[str]:
    """What a shell is offered behind `words`."""
    environment = {"FAIRLEAD_DATA_DIR": "/nonexistent"}
    if gateway is not None:
        environment = {"FAIRLEAD_DATA_DIR": str(gateway.data_dir)}
    if shell == "bash":
        environment |= {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    else:
        environment |= {"_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    ended = fairlead(**environment, _FAIRLEAD_COMPLETE=f"complete_{shell}")
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout.split()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_commands_and_options_in_each_shell(shell: str) -> None:
    def found(words: str) -> str:
        return "\n".join(offered(words, shell=shell))

    assert "keys" in found("fairlead ke")
    assert "webhooks" in found("fairlead w")
    assert "create" in found("fairlead keys cr")
    assert "--model" in found("fairlead chat --mo")


def test_models_and_ids_come_from_the_gateway(gateway: Gateway, lane: Lane) -> None:
    model = {"id": "m", "object": "model"}
    hostile = {"id": "$(touch owned)`id`", "object": "model"}
    lane.upstream.script(reply({"object": "list", "data": [model, hostile]}))
    (connection,) = lane.connections
    gateway.admin.post(f"/api/providers/{connection['id']}/test")
    assert offered(f"fairlead chat --model {lane.prefix}", gateway) == [lane.model]
    key = gateway.create_key(name="laptop-of-completion")
    assert offered("fairlead keys revoke laptop-of", gateway) == ["laptop-of-completion"]
    assert offered(f"fairlead keys show {key['id'][:20]}", gateway) == [key["id"]]
    assert offered(f"fairlead providers show {connection['id'][:20]}", gateway) == [
        connection["id"]
    ]


def test_without_a_gateway_nothing_is_offered() -> None:
    assert offered("fairlead chat --model ") == []
    assert offered("fairlead keys revoke ") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell(shell: str) -> None:
    ended = fairlead("completion", shell)
    assert ended.returncode == 0
    assert f"complete_{shell}" in ended.stdout
    program = shutil.which(shell)
    if program is not None:
        checked = subprocess.run(
            [program, "-n"], input=ended.stdout, text=True, capture_output=True
        )
        assert checked.returncode == 0, checked.stderr
    assert started_fairlead("completion", "csh").returncode == 2


def test_bash_completes_with_it(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("needs bash")
    script = (
        f'eval "$({Path(sys.executable).parent / "fairlead"} completion bash)"\n'
        'COMP_WORDS=(fairlead contexts ""); COMP_CWORD=2; _fairlead_completion fairlead\n'
        'echo "${COMPREPLY[@]}"'
    )
    path = f"{Path(sys.executable).parent}:{clean_environment()['PATH']}"
    ended = subprocess.run(
        [bash, "-c", script],
        env=clean_environment() | {"PATH": path},
        capture_output=True,
        text=True,
    )
    assert ended.stdout.split() == ["list", "use", "remove"]
