"""The times at which a delivery is tried again: at growing intervals for 24 hours, with jitter."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

from fairlead.moment import ms_of

# Seconds after the first, second, ... failure; the last interval repeats.
BACKOFF_S: Final = (5, 30, 120, 600, 1800, 3600, 7200, 14_400, 28_800)
JITTER: Final = 0.2
# The longest pause that a listener may ask for; its delivery ends after a day anyway.
RETRY_AFTER_MAX_S: Final = 24 * 3600


def next_attempt_at_ms(
    tries: int,
    now_ms: int,
    expires_at_ms: int,
    retry_after_s: int | None,
    spread: Callable[[float, float], float],
) -> int | None:
    """The time of the next try after `tries` failures, or None when the time is up. The last try is
    at the end of the window. `spread` is `random.uniform`. Never earlier than the listener asked
    for, unless that is after the end.
    """
    if now_ms >= expires_at_ms:
        return None
    interval_s = BACKOFF_S[min(tries, len(BACKOFF_S)) - 1]
    wait_s = interval_s * spread(1 - JITTER, 1 + JITTER)
    if retry_after_s is not None:
        wait_s = max(wait_s, retry_after_s)
    return min(now_ms + round(wait_s * 1000), expires_at_ms)


def parse_retry_after(value: str | None, now_ms: int) -> int | None:
    """Seconds from `Retry-After` (a number or an HTTP date), between 0 and a day; None for anything
    else.
    """
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit() and len(text) <= 12:
        return min(int(text), RETRY_AFTER_MAX_S)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0, min(-(-(ms_of(moment) - now_ms) // 1000), RETRY_AFTER_MAX_S))
