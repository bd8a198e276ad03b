"""Removes secrets before they reach the disk.

By default, what `secrets` finds in the encoded line by the table in `secrets/rules.py` is replaced.

A user's own hook is called with every string of a payload, keys and values, at any depth. It fails closed: if it raises
or returns anything but a string, the text is replaced by `FAILED`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sessionlog.events.secrets import find_spans
from sessionlog.events.secrets.long_words import Span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Hook = Callable[[str], str]

FAILED = "[redaction failed]"
MARK = b"[redacted]"
"""The text that replaces a secret."""


def redact_line(line: bytes, start: int = 0) -> bytes:
    """Replace well-known secrets from `start` on in an encoded line; a line without one is returned as it is."""
    return replace_spans(line, find_spans(line, start))


def replace_spans(line: bytes, spans: Sequence[Span]) -> bytes:
    """Replace the secrets at these places; without any the line is returned as it is."""
    if not spans:
        return line
    pieces: list[bytes] = []
    done = 0
    for begin, end, _ in spans:
        pieces += (line[done:begin], MARK)
        done = end
    return b"".join((*pieces, line[done:]))


def redact_text(text: str) -> str:
    """Replace well-known secrets in a notice, which may quote an exception or a path."""
    try:
        return redact_line(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
    except Exception:  # noqa: BLE001 - fail closed
        return FAILED


def apply_hook(hook: Hook, value: Any) -> Any:
    """Return a copy of a sanitised JSON value with every string, keys included, passed through `hook`."""
    if isinstance(value, str):
        try:
            changed = hook(value)
        except Exception:  # noqa: BLE001 - a failing hook must neither break the agent nor let the secret through
            return FAILED
        return changed if isinstance(changed, str) else FAILED
    if isinstance(value, dict):
        from sessionlog.events.sanitise import distinct_keys

        return distinct_keys((apply_hook(hook, key), apply_hook(hook, item)) for key, item in value.items())
    if isinstance(value, list):
        return [apply_hook(hook, item) for item in value]
    return value
