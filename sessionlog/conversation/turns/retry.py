"""Which failures of a request are transient, and how long to wait: exponential backoff with jitter.

Nothing here sleeps. A `Retry-After` of the provider is respected, up to the longest pause of the settings.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

from sessionlog.conversation.history.settings import ConversationSettings

_DOUBLINGS = 64  # limits the exponent
_STATUS_NAMES = ("status_code", "status", "http_status", "code")
_STATUSES = {408, 409, 425, 429}
_NAMES = frozenset({
    "APIConnectionError", "APITimeoutError", "ConnectError", "ConnectTimeout", "ReadError", "ReadTimeout",
    "WriteError", "WriteTimeout", "PoolTimeout", "CloseError", "RemoteProtocolError", "ServerDisconnectedError",
    "ClientConnectionError", "ClientOSError", "IncompleteRead", "ProtocolError", "ServiceUnavailable",
})  # fmt: skip
"""Connection errors of several libraries, by the name of any of their base classes."""
_TYPES = {"overloaded_error", "rate_limit_error", "api_error", "timeout_error"}
"""Types of Anthropic's errors within an answer whose status was 200."""


def pause_before_retry(
    error: Exception,
    attempt: int,
    settings: ConversationSettings,
    *,
    jitter: Callable[[], float] = random.random,
    now: Callable[[], float] = time.time,
) -> float | None:
    """Return the seconds until the next attempt; None if there is none.

    Args:
        error: Why the last attempt failed.
        attempt: Its number, from 1.
        settings: The number of attempts, and the pauses.
        jitter: Returns a number in [0, 1); replaced in tests.
        now: Returns seconds since 1970; replaced in tests.
    """
    if attempt >= settings.retry_attempts or not is_transient(error):
        return None
    requested = retry_after(error, now())
    doubled = settings.retry_initial_s * 2.0 ** min(attempt - 1, _DOUBLINGS)
    seconds = doubled + jitter() * settings.retry_jitter_s if requested is None else requested
    return min(seconds, settings.retry_max_s)


def is_transient(error: BaseException) -> bool:
    """Whether the error or its cause is transient: a connection error, a time-out, 408, 409, 425, 429 or any 5xx."""
    seen: set[int] = set()
    while id(error) not in seen:
        seen.add(id(error))
        status = _status(error)
        if status is not None:
            return status in _STATUSES or 500 <= status < 600
        kind = getattr(error, "type", None)
        if isinstance(kind, str) and kind in _TYPES:
            return True
        if isinstance(error, ConnectionError | TimeoutError):
            return True
        if any(kind.__name__ in _NAMES for kind in type(error).__mro__):
            return True
        if error.__cause__ is None:
            return False
        error = error.__cause__
    return False


def retry_after(error: BaseException, now: float) -> float | None:
    """Return the seconds of a provider's `Retry-After`, which is in seconds or a date; None without one."""
    for holder in (getattr(error, "response", None), error):
        headers = getattr(holder, "headers", None)
        if not isinstance(headers, Mapping):
            continue
        given = {str(name).lower(): value for name, value in headers.items()}
        milliseconds = _number(given.get("retry-after-ms"))
        if milliseconds is not None:
            return milliseconds / 1000
        if "retry-after" in given:
            seconds = _number(given["retry-after"])
            return _until(given["retry-after"], now) if seconds is None else seconds
    return None


def _status(error: BaseException) -> int | None:
    body = getattr(error, "body", None)
    found = [getattr(error, name, None) for name in _STATUS_NAMES]
    found += [getattr(getattr(error, "response", None), name, None) for name in _STATUS_NAMES]
    found += [body.get("code")] if isinstance(body, Mapping) else []  # an error within an answer
    # of any subclass, as HTTPStatus
    return next((int(value) for value in found if isinstance(value, int) and 400 <= value < 600), None)


def _number(value: Any) -> float | None:
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _until(date: Any, now: float) -> float | None:
    try:
        then = parsedate_to_datetime(str(date))
    except ValueError:
        return None
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return max(0.0, then.timestamp() - now)
