"""What pyproject.toml declares for the package is used by the package."""

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
MODULES = {
    "argon2-cffi": "argon2",
    "opentelemetry-exporter-otlp-proto-http": "opentelemetry.exporter.otlp.proto.http",
    "opentelemetry-sdk": "opentelemetry.sdk",
    "python-dotenv": "dotenv",
    "pyyaml": "yaml",
}
# duckdb and polars exchange tables through pyarrow; zoneinfo reads tzdata.
USED_BY_OTHERS = {"pyarrow", "tzdata"}


def named_modules() -> set[str]:
    """Modules that the package imports, and strings: some are imported by name when needed."""
    found: set[str] = set()
    for path in (ROOT / "python").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return found


def test_every_declared_dependency_is_imported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = list(project["dependencies"])
    for extra in project["optional-dependencies"].values():
        declared += extra
    names = {re.split(r"[^\w-]", each)[0] for each in declared} - USED_BY_OTHERS
    modules = named_modules()
    unused = {
        name
        for name in names
        for module in [MODULES.get(name, name.replace("-", "_"))]
        if not any(each == module or each.startswith(f"{module}.") for each in modules)
    }
    assert not unused
