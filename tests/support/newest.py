"""Runs the tests of the vendors' SDKs with the newest versions that PyPI and npm have: `make newest`.

The pinned versions stay as they are. A failure means that a newer SDK sends or expects something that fairlead does not
handle yet, and that its users will meet it.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NODE = ROOT / "tests" / "support" / "node"
PYTHON_SDKS = ("anthropic", "google-genai", "ollama", "openai")
NODE_SDKS = (
    "@ai-sdk/anthropic",
    "@ai-sdk/openai",
    "@ai-sdk/openai-compatible",
    "@anthropic-ai/sdk",
    "ai",
    "openai",
)
PYTHON_TESTS = (
    "tests/contract/test_anthropic_client.py",
    "tests/contract/test_client_pages.py",
    "tests/contract/test_gemini_client.py",
    "tests/contract/test_genai_batches.py",
    "tests/contract/test_genai_interactions.py",
    "tests/contract/test_genai_videos.py",
    "tests/contract/test_ollama_client.py",
    "tests/contract/test_openai_client.py",
    "tests/contract/test_openai_files.py",
    "tests/contract/test_openai_surfaces.py",
    "tests/contract/test_openai_videos.py",
    "tests/contract/test_responses_client.py",
)
NODE_TESTS = ("tests/contract/test_npm_clients.py",)


def install_python(folder: Path) -> dict[str, str]:
    """The newest SDKs in a folder of their own; what they depend on keeps the versions that the tests have."""
    constraints = folder.with_suffix(".constraints")
    constraints.write_text(
        "\n".join(
            f"{each.name}=={each.version}"
            for each in importlib.metadata.distributions()
            if each.name not in (*PYTHON_SDKS, "fairlead")
        ),
        "utf-8",
    )
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    subprocess.run(
        [*pip, "--upgrade", "--target", folder, "--constraint", constraints, *PYTHON_SDKS],
        check=True,
    )
    found = importlib.metadata.distributions(path=[str(folder)])
    return {each.name: each.version for each in found if each.name in PYTHON_SDKS}


def install_node(folder: Path) -> dict[str, str]:
    """The newest SDKs beside a copy of the scripts that call them."""
    shutil.copytree(
        NODE, folder, ignore=shutil.ignore_patterns("node_modules", "package-lock.json")
    )
    newest = [f"{name}@latest" for name in NODE_SDKS]
    subprocess.run(["npm", "install", "--silent", "--no-audit", *newest], cwd=folder, check=True)
    return {
        name: json.loads((folder / "node_modules" / name / "package.json").read_text())["version"]
        for name in NODE_SDKS
    }


def run(tests: tuple[str, ...], **environment: str) -> bool:
    """Whether all of these tests pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "slow or not slow", *tests]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | environment, check=False)
    return done.returncode == 0


def pinned_python() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in PYTHON_SDKS}


def pinned_node() -> dict[str, str]:
    packages = json.loads((NODE / "package-lock.json").read_text("utf-8"))["packages"]
    return {name: packages[f"node_modules/{name}"]["version"] for name in NODE_SDKS}


def report(registry: str, pinned: dict[str, str], newest: dict[str, str], *, passed: bool) -> None:
    for name, version in sorted(newest.items()):
        print(f"{registry} {name}: pinned {pinned[name]}, newest {version}")
    print(f"{registry}: {'all tests pass' if passed else 'TESTS FAIL with the newest SDKs'}")


def main() -> int:
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        python = install_python(folder / "python")
        python_passed = run(PYTHON_TESTS, PYTHONPATH=str(folder / "python"))
        report("PyPI", pinned_python(), python, passed=python_passed)
        if not shutil.which("npm"):
            return 0 if python_passed else 1
        node = install_node(folder / "node")
        node_passed = run(NODE_TESTS, FAIRLEAD_TEST_NODE=str(folder / "node"))
        report("npm", pinned_node(), node, passed=node_passed)
    return 0 if python_passed and node_passed else 1


if __name__ == "__main__":
    sys.exit(main())
