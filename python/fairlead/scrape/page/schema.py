"""Data held to a caller's JSON Schema, within a budget of processor time.

A schema of a few kilobytes can ask for more steps than there will ever be time for: parts that refer to parts
that refer to parts, twice each. So this runs in a process that may be killed (`page.worker`), and stops by
itself before that, with a reason.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import jsonschema
import polars as pl
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

DEPTH_MAX: Final = 50
JUDGE_CPU_S: Final = 2.0
AGAIN_CPU_S: Final = 0.1
VIOLATIONS_MAX: Final = 10

TOO_COSTLY: Final = (
    "schema takes more steps to check than a schema may. Parts that refer to each other, many patterns and "
    "uniqueItems of long lists cost most: make it simpler."
)
ENDLESS: Final = (
    "schema refers to itself without end, or the data is nested too deep: a part may refer to one that "
    "contains it only from within properties or items."
)

# A value of each type is checked against everything that a schema applies to one place. If that is too expensive, every
# answer would be, so the schema is refused before a model is called.
_SAMPLES: Final[tuple[Any, ...]] = (None, {}, [], "", 0)
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")


class _SchemaRefused(Exception):
    """A schema that is refused; the text is a sentence with the reason."""


class _OutOfTime(BaseException):
    """Processor time is used up. A `BaseException`, because a library could catch an `Exception`."""


def judge(schema: dict[str, Any], *data: Any) -> dict[str, Any]:
    """`{"refused"}` for a schema that is refused; else `{"violations"}` of the data, at most
    `VIOLATIONS_MAX` of them, and none where no data is given. Takes at most `JUDGE_CPU_S` of the processor.
    """
    try:
        with _at_most(JUDGE_CPU_S):
            _check_form(schema)
            validator = _validator(schema)
            if data:
                return {"violations": _violations_of(data[0], validator)}
            for sample in _SAMPLES:
                for _ in validator.iter_errors(sample):
                    pass
            return {"violations": []}
    except _SchemaRefused as reason:
        return {"refused": str(reason)}
    except _OutOfTime:
        return {"refused": TOO_COSTLY}
    except Unresolvable as fault:
        return {"refused": f"schema refers to {fault.ref[:200]!r}, which is not in it."}
    except RecursionError:
        return {"refused": ENDLESS}


@contextmanager
def _at_most(cpu_s: float) -> Iterator[None]:
    is_open = True

    def stop(*_: object) -> None:
        if is_open:
            raise _OutOfTime

    earlier = signal.signal(signal.SIGPROF, stop)
    # Repeated, because the interpreter drops an exception that is raised while it destroys an object.
    signal.setitimer(signal.ITIMER_PROF, cpu_s, AGAIN_CPU_S)
    try:
        try:
            yield
        finally:
            is_open = False
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, earlier)


def _check_form(schema: dict[str, Any]) -> None:
    """Checks depth, references and patterns. `_SchemaRefused`."""
    waiting: list[tuple[Any, int]] = [(schema, 1)]
    while waiting:
        each, depth = waiting.pop()
        if depth > DEPTH_MAX:
            raise _SchemaRefused(f"schema is nested more than {DEPTH_MAX} deep.")
        if isinstance(each, dict):
            _check_part(each)
            waiting.extend((inner, depth + 1) for inner in each.values())
        elif isinstance(each, list):
            waiting.extend((inner, depth + 1) for inner in each)


def _check_part(part: dict[str, Any]) -> None:
    for name in _REFERENCES:
        if isinstance(reference := part.get(name), str) and not reference.startswith("#"):
            raise _SchemaRefused(
                "schema may refer to its own parts only (`$ref` that begins with #)."
            )
    if "patternProperties" in part:
        raise _SchemaRefused("schema may not use patternProperties; name the properties.")
    if isinstance(pattern := part.get("pattern"), str) and not _is_readable(pattern):
        raise _SchemaRefused(
            f"schema has the pattern {pattern[:60]!r}, which is not a regular expression of "
            "the kind that is read here: no look-around, no back-references."
        )


def _validator(schema: dict[str, Any]) -> Any:
    kind = validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema)
    except jsonschema.SchemaError as fault:
        where = "/".join(map(str, fault.absolute_path))
        raise _SchemaRefused(
            f"schema is not a JSON Schema: {fault.message[:200]} at /{where}."
        ) from None
    # Python's own engine may take for ever on a pattern; ours is linear in the text. The registry is empty, so
    # nothing is fetched that a schema names.
    extended = jsonschema.validators.extend(kind, {"pattern": _match_pattern})
    return extended(schema, registry=Registry())


def _match_pattern(
    _: Any, pattern: str, value: Any, __: Any
) -> Iterator[jsonschema.ValidationError]:
    if isinstance(value, str) and not _matches(pattern, value):
        yield jsonschema.ValidationError(f"{value[:50]!r} does not match {pattern[:100]!r}")


def _is_readable(pattern: str) -> bool:
    """Whether the engine reads the pattern: it has no look-around and no back-references."""
    try:
        pl.Series(["x"]).str.contains(pattern)
    except pl.exceptions.PolarsError:
        return False
    return True


def _matches(pattern: str, text: str) -> bool:
    """Whether a readable pattern is found in the text."""
    return bool(pl.Series([text]).str.contains(pattern)[0])


def _violations_of(data: Any, validator: Any) -> list[str]:
    violations: list[str] = []
    for fault in validator.iter_errors(data):
        where = "/".join(map(str, fault.absolute_path))
        violations.append(f"/{where}: {fault.message[:200]}")
        if len(violations) >= VIOLATIONS_MAX:
            break
    return violations
