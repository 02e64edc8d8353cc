"""Coding tools of others, unmodified: configured by `setup-<tool>`, each does one task with the stand-in as its model.

The prompt orders a tool call by which the tool writes a file; that it is written proves the whole way there and back.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.coding_tools import Person, need, standin_prefix
from tests.support.processes import Gateway


@dataclass(frozen=True)
class Task:
    """How a tool is asked for one task: its command's arguments around the prompt, and the call that writes a file."""

    tool: str
    command: str
    arguments: Callable[[str, Person], list[str]]
    name: str
    fields: Callable[[str], dict[str, Any]]
    setup: str | None = None
    """What `setup` or `run` calls it, where that is not its command."""
    dialect: str = "openai"
    types_prompt: bool = False


def written(path: str, content: str) -> Callable[[str], dict[str, Any]]:
    return lambda place: {path: place, content: "edited"}


CONFIGURED = [
    Task(
        "qwen",
        "qwen",
        lambda prompt, _: ["-y", prompt],
        "write_file",
        written("file_path", "content"),
    ),
    Task(
        "continue",
        "cn",
        lambda prompt, person: [
            "-p",
            "--auto",
            "--config",
            str(person.home / ".continue/config.yaml"),
            prompt,
        ],
        "Write",
        written("filepath", "content"),
    ),
    Task(
        "codex",
        "codex",
        lambda prompt, _: [
            *("exec", "--profile", "fairlead", "--skip-git-repo-check"),
            *("--dangerously-bypass-approvals-and-sandbox", prompt),
        ],
        "exec_command",
        lambda place: {"cmd": f"printf edited > {place}"},
    ),
    Task(
        "claude",
        "claude",
        lambda prompt, _: ["-p", "--allowedTools", "Write", "--", prompt],
        "Write",
        written("file_path", "content"),
    ),
    Task(
        "opencode",
        "opencode",
        lambda _, __: ["run", "--auto"],
        "write",
        written("filePath", "content"),
        types_prompt=True,
    ),
    Task("pi", "pi", lambda prompt, _: ["-p", prompt], "write", written("path", "content")),
    Task(
        "cline",
        "cline",
        lambda prompt, _: ["--json", prompt],
        "editor",
        written("path", "new_text"),
    ),
]
RUN = [
    Task(
        "copilot",
        "copilot",
        lambda prompt, _: ["--allow-all-tools", "-p", prompt],
        "create",
        written("path", "file_text"),
    ),
    Task(
        "gemini",
        "gemini",
        lambda prompt, _: ["-y", "--skip-trust", "-p", prompt],
        "write_file",
        written("file_path", "content"),
        dialect="gemini",
    ),
    Task(
        "qwen",
        "qwen",
        lambda prompt, _: ["-y", prompt],
        "write_file",
        written("file_path", "content"),
    ),
]
LIGHT = {"qwen", "continue"}


def cases(tasks: list[Task]) -> list[Any]:
    return [
        pytest.param(task, id=task.tool, marks=[] if task.tool in LIGHT else [pytest.mark.slow])
        for task in tasks
    ]


@pytest.fixture
def person(gateway: Gateway, tmp_path: Path) -> Person:
    made = Person(gateway, tmp_path / "home", tmp_path / "work")
    made.home.mkdir()
    made.work.mkdir()
    return made


def order(task: Task, place: Path) -> str:
    call = json.dumps({"name": task.name, "arguments": task.fields(str(place))})
    return f"please <call>{call}</call>"


def files_of(home: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in home.rglob("*") if path.is_file()}


@pytest.mark.parametrize("task", cases(CONFIGURED))
def test_a_tool_works_as_configured_and_is_put_back(
    task: Task, person: Person, standin_url: str
) -> None:
    command = need(task.command)
    model = f"{standin_prefix(person.gateway, standin_url, task.dialect)}/standin"
    done = json.loads(
        person.fairlead(f"setup-{task.tool}", "--yes", "--json", "--model", model).stdout
    )
    files = [Path(path) for path in done["files"]]
    assert files
    place, prompt = person.work / "made.txt", order(task, person.work / "made.txt")
    ended = person.run(
        [command, *task.arguments(prompt, person)], prompt if task.types_prompt else ""
    )
    assert place.exists(), ended.stdout[-2000:] + ended.stderr[-2000:]
    assert place.read_text().strip() == "edited"
    person.fairlead("undo", task.tool)
    # What the tool itself keeps in its home is its own; nothing of ours is left.
    left = [
        path
        for path, content in files_of(person.home).items()
        if person.gateway.url.encode() in content
    ]
    assert not [path for path in left if Path(path) in files]


@pytest.mark.parametrize("task", cases(RUN))
def test_a_tool_is_run_without_being_configured(
    task: Task, person: Person, standin_url: str
) -> None:
    need(task.command)
    model = f"{standin_prefix(person.gateway, standin_url, task.dialect)}/standin"
    place = person.work / "made.txt"
    ended = person.fairlead(
        "run", task.tool, "--model", model, "--", *task.arguments(order(task, place), person)
    )
    assert place.exists(), ended.stdout[-2000:] + ended.stderr[-2000:]
    assert place.read_text().strip() == "edited"


CODEX_BY_ADDRESS = """
model = "{model}"
model_provider = "gateway"

[model_providers.gateway]
name = "gateway"
base_url = "{url}/v1"
env_key = "FAIRLEAD_SETUP_API_KEY"
wire_api = "responses"
"""


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ("openai", "anthropic", "gemini"))
def test_codex_works_by_its_address_alone(dialect: str, person: Person, standin_url: str) -> None:
    """With its namespaces, its custom tools and its web search, at providers that have none of them."""
    task = next(task for task in CONFIGURED if task.tool == "codex")
    command = need(task.command)
    model = f"{standin_prefix(person.gateway, standin_url, dialect)}/standin"
    (person.home / ".codex").mkdir()
    config = CODEX_BY_ADDRESS.format(model=model, url=person.gateway.url)
    (person.home / ".codex/config.toml").write_text(config)
    place = person.work / "made.txt"
    options = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    ended = person.run([command, "exec", *options, order(task, place)])
    assert place.exists(), ended.stdout[-2000:] + ended.stderr[-2000:]
    assert place.read_text().strip() == "edited"


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ("openai", "anthropic"))
def test_gemini_cli_works_with_models_of_other_dialects(
    dialect: str, person: Person, standin_url: str
) -> None:
    task = next(task for task in RUN if task.tool == "gemini")
    need(task.command)
    model = f"{standin_prefix(person.gateway, standin_url, dialect)}/standin"
    place = person.work / "made.txt"
    arguments = task.arguments(order(task, place), person)
    ended = person.fairlead("run", task.tool, "--model", model, "--", *arguments)
    assert place.exists(), ended.stdout[-2000:] + ended.stderr[-2000:]
    assert place.read_text().strip() == "edited"


@pytest.mark.slow
def test_aider_edits_a_file(person: Person, standin_url: str) -> None:
    command = need("aider")
    model = f"{standin_prefix(person.gateway, standin_url)}/standin"
    person.fairlead("setup-aider", "--yes", "--model", model)
    place = person.work / "made.txt"
    place.write_text("a\n")
    answer = "<say>made.txt\n<<<<<<< SEARCH\na\n=======\nedited\n>>>>>>> REPLACE\n</say>"
    flags = ["--yes-always", "--no-check-update", "--analytics-disable", "--no-git"]
    flags += ["--no-show-model-warnings", "--edit-format", "diff"]
    ended = person.run([command, *flags, "--message", answer, "made.txt"])
    assert place.read_text() == "edited\n", ended.stdout + ended.stderr
    person.fairlead("undo", "aider")
    assert not (person.home / ".aider.conf.yml").exists()


def test_llm_calls_a_tool_that_writes_a_file(person: Person, standin_url: str) -> None:
    command = need("llm")
    model = f"{standin_prefix(person.gateway, standin_url)}/standin"
    done = json.loads(person.fairlead("setup-llm", "--yes", "--json", "--model", model).stdout)
    assert [Path(path).name for path in done["files"]] == ["extra-openai-models.yaml", "keys.json"]
    place = person.work / "made.txt"
    tool = "def write_file(path: str, content: str):\n    open(path, 'w').write(content)\n"
    call = {"name": "write_file", "arguments": {"path": str(place), "content": "edited"}}
    prompt = f"please <call>{json.dumps(call)}</call>"
    ended = person.run([command, "-m", model, "--functions", tool, prompt])
    assert place.exists(), ended.stdout + ended.stderr
    assert place.read_text() == "edited"
    person.fairlead("undo", "llm")
    assert not [path for path in done["files"] if Path(path).exists()]
