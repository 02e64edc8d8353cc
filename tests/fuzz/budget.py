"""How long a fuzz test looks for a counterexample: by the clock, not by a number of examples.

    from tests.fuzz.budget import budget

    @budget
    @given(st.binary())
    def test_the_reader_takes_any_bytes(body: bytes) -> None:
        ...

Write `@budget` above `@given`. Each test runs for 60 seconds, or for `FAIRLEAD_FUZZ_SECONDS`: 1 in
`make test`, and 300 in `make test-fuzz`. Tests that look at one reader from several
sides share its seconds: `@budget_of(1 / 4)` on each of four. The limit of pytest-timeout is raised with it. A failure
prints the smallest example that was found, and hypothesis keeps it in `.hypothesis` for the next run.
A test that needs setting up for each example (a process, a loop) makes it outside and hands it in: examples are
to take milliseconds. That code is linear is shown with `at_most`, around a large input; an example that never
ends is ended by pytest-timeout, which names the line that hangs.

All of them run this folder in four processes, test by test.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE: Final = "FAIRLEAD_FUZZ_SECONDS"
DEFAULT_S: Final = 60.0
SHRINKING_S: Final = 330.0
"""What hypothesis may take beyond the budget to make a failure small; it gives up by itself after 300 s."""
EXAMPLES_MAX: Final = 10_000_000


class OutOfTime(BaseException):
    """The budget is used up: how a run ends that has found nothing. No `Exception`, which would be a failure
    of the example.
    """


def seconds() -> float:
    """The budget of one test in seconds. `ValueError` for what is no positive number."""
    said = os.environ.get(VARIABLE, "").strip()
    if not said:
        return DEFAULT_S
    if not (count := float(said)) > 0:
        raise ValueError(f"{VARIABLE} is {said!r}: it must be a number of seconds above 0")
    return count


def budget_of(share: float) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """`budget` with this share of the seconds, above 0 and at most 1."""
    return functools.partial(budget, share=share)


def budget(test: Callable[..., None], share: float = 1) -> Callable[..., None]:
    """Runs a test of hypothesis until it fails or its seconds are used up."""
    within_s = seconds() * share
    inner = test.hypothesis.inner_test  # type: ignore[attr-defined]
    clock = _Clock()

    @functools.wraps(inner)
    def example(*args: Any, **kwargs: Any) -> None:
        # Not while a failure is being made smaller: what ends early then would look like a passing example.
        if not clock.has_failed and clock.is_over():
            raise OutOfTime
        try:
            inner(*args, **kwargs)
        except (Exception, pytest.fail.Exception):
            clock.has_failed = True
            raise

    test.hypothesis.inner_test = example  # type: ignore[attr-defined]
    limited = settings(
        max_examples=EXAMPLES_MAX,
        deadline=None,
        # Large inputs are what is looked for; a slow machine is no fault of the strategy.
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )(test)

    @functools.wraps(limited)
    def run(*args: Any, **kwargs: Any) -> None:
        clock.begin(within_s)
        try:
            limited(*args, **kwargs)
        except OutOfTime:
            return

    marked: Callable[..., None] = pytest.mark.timeout(within_s + SHRINKING_S)(run)
    return marked


@contextmanager
def at_most(within_s: float) -> Iterator[None]:
    """Fails when what stands in it takes longer. Of processor time, so that a full machine is no failure."""
    began_s = time.process_time()
    yield
    took_s = time.process_time() - began_s
    assert took_s <= within_s, f"took {took_s:.2f} s of the processor, at most {within_s:g} s"


class _Clock:
    """The time of one run."""

    def __init__(self) -> None:
        self.has_failed = False
        self.examples = 0
        self._ends_s = 0.0

    def begin(self, within_s: float) -> None:
        self.has_failed, self.examples = False, 0
        self._ends_s = time.monotonic() + within_s

    def is_over(self) -> bool:
        # The first example runs however long the strategy took to be made ready.
        is_over = self.examples > 0 and time.monotonic() >= self._ends_s
        self.examples += 1
        return is_over
