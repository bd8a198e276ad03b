"""Secrets out, before they reach the disk.

The default looks for well-known key shapes in the encoded line: one linear regular expression, so that a megabyte of
adversarial text costs milliseconds. A cheaper expression goes first (0.7 µs instead of 4 µs on a 300-byte event): it
finds two or three letters that every shape contains, and nearly every line has none. Each shape consists of
characters that JSON never escapes (a private key's line ends apart), so replacing it leaves the line valid JSON.

A user's own hook gets every string of a payload, keys and values, at any depth. It fails closed: if it raises or
returns anything but a string, the text is gone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Hook = Callable[[str], str]

FAILED = "[redaction failed]"
_MARK = b"[redacted]"

SHAPES: Mapping[str, bytes] = {
    "api key (sk-…)": rb"\bsk-[A-Za-z0-9_-]{20,}",
    "GitHub token": rb"\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_[A-Za-z0-9_]{22,}",
    "GitLab token": rb"\bglpat-[A-Za-z0-9_-]{20,}",
    "AWS access key": rb"\bA(?:KIA|SIA)[A-Z0-9]{16}\b",
    "Google API key": rb"\bAIza[A-Za-z0-9_-]{35}",
    "Slack token": rb"\bxox[abposr]-[A-Za-z0-9-]{10,}",
    "Hugging Face token": rb"\bhf_[A-Za-z0-9]{30,}",
    "npm token": rb"\bnpm_[A-Za-z0-9]{36}",
    "JSON web token": rb"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    "bearer token": rb"\b[Bb]earer [A-Za-z0-9._~+/-]{20,}=*",
    "private key": rb"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----(?:[A-Za-z0-9+/=\s:,]|\\[nrt])*"
    rb"(?:-----END [A-Z ]{0,20}PRIVATE KEY-----)?",
}
"""Name → shape. A shape starts at a fixed prefix and consumes what it looks at, which keeps the search linear."""

_HINT = re.compile(rb"[khAxpyBbT](?:-[A-Za-z0-9]|[pousr]_|f_|m_|KIA|SIA|Iza|ox|at[-_]|J|earer |E KEY)")
_SECRET = re.compile(b"|".join(SHAPES.values()))
_NAMED = {name: re.compile(shape) for name, shape in SHAPES.items()}


may_hold_secret = _HINT.search
"""The cheap look: `may_hold_secret(line, start)` is None for nearly every line."""


def redact_line(line: bytes) -> bytes:
    """Replace well-known secrets in an encoded line."""
    return line if may_hold_secret(line) is None else _SECRET.sub(_MARK, line)


def find_secrets(line: bytes) -> Iterator[tuple[str, int]]:
    """Yield (name of the shape, byte offset) for each secret in a line that was written without redaction."""
    if _HINT.search(line) is None:
        return
    for name, shape in _NAMED.items():
        for match in shape.finditer(line):
            yield name, match.start()


def apply_hook(hook: Hook, value: Any) -> Any:
    """Return a copy of a sanitised JSON value with every string, keys included, passed through `hook`."""
    if isinstance(value, str):
        try:
            changed = hook(value)
        except Exception:  # noqa: BLE001 - a failing hook must neither break the agent nor let the secret through
            return FAILED
        return changed if isinstance(changed, str) else FAILED
    if isinstance(value, dict):
        return {apply_hook(hook, key): apply_hook(hook, item) for key, item in value.items()}
    if isinstance(value, list):
        return [apply_hook(hook, item) for item in value]
    return value
