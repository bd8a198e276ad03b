"""Session ids: checked, so that an id as a file name stays inside its folder on every file system."""

from __future__ import annotations

import re
from collections.abc import Callable
from time import gmtime, strftime

_SHAPE = r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z"
_DEVICES = frozenset({"con", "prn", "aux", "nul"} | {f"{name}{n}" for name in ("com", "lpt") for n in range(10)})
_SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.zst")


def check_session_id(session_id: object) -> str:
    """Return the id if it can be a file name everywhere.

    Raises:
        InvalidSessionId: Not `[A-Za-z0-9][A-Za-z0-9._-]{0,127}`, contains `..`, ends in a dot or a log suffix, or is
            the name of a Windows device.
    """
    reason = _why_invalid(session_id)
    if reason:
        from sessionlog.errors import InvalidSessionId

        shown = repr(session_id)[:80] if isinstance(session_id, str) else type(session_id).__name__
        raise InvalidSessionId(
            f"session id {shown}: {reason}; use up to 128 letters, digits, '.', '_' or '-', beginning with a letter "
            "or digit"
        )
    assert isinstance(session_id, str)
    return session_id


def _why_invalid(session_id: object) -> str | None:
    if not isinstance(session_id, str):
        return "not a string"
    if not re.match(_SHAPE, session_id, re.ASCII):
        return "not a safe file name"
    if ".." in session_id or session_id.endswith("."):
        return "dots could lead out of the folder"
    if session_id.split(".", 1)[0].lower() in _DEVICES:
        return "a device name on Windows"
    if session_id.lower().endswith(_SUFFIXES):
        return "the suffix .jsonl is added by the logger"
    return None


def new_session_id(now_ns: int, random_bytes: Callable[[int], bytes]) -> str:
    """Return `YYYYMMDDTHHMMSSZ-` and 8 hexadecimal digits: sorts by time, unique enough for one folder."""
    return f"{strftime('%Y%m%dT%H%M%SZ', gmtime(now_ns // 1_000_000_000))}-{random_bytes(4).hex()}"
