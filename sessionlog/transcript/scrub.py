"""Take the secrets out of a session's events, and find what still looks like one in a text that will be shown.

Secrets are those of `sessionlog scrub`. A text may still hold one that the log had in pieces, or a value of random
letters behind a name such as `api_key=` that no rule knows.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from sessionlog.errors import Problem
from sessionlog.events.encode import encode_object
from sessionlog.events.envelope import Event
from sessionlog.events.redact import redact_line, redact_text
from sessionlog.events.secrets import find_spans

_ASSIGNED = re.compile(
    r"(key|token|secret|passw(?:or)?d|pwd|credential|auth)[\w.-]{0,40}[\"'`\\]{0,4}\s{0,3}[:=]\s{0,3}[\"'`\\]{0,4}"
    r"([A-Za-z0-9+/_=~.-]{20,400})",
    re.IGNORECASE,
)
_HEX = re.compile(r"[0-9a-fA-F]+")
_LEAST_BITS, _LEAST_HEX_BITS = 4.0, 3.2
"""Bits per character of a random value of some length; words, paths, times and UUIDs have less."""


def scrub_events(items: Iterable[Event | Problem]) -> Iterator[Event | Problem]:
    """Yield the events without their secrets; one without any is yielded as it is."""
    for item in items:
        yield item if isinstance(item, Problem) else scrub_event(item)


def scrub_event(event: Event) -> Event:
    """Return an event with `[redacted]` for each secret."""
    line = encode_object({"data": event.data, "extra": dict(event.extra)})
    clean = redact_line(line)
    session_id = redact_text(event.session_id)
    if clean is line and session_id == event.session_id:
        return event
    value = json.loads(clean)
    return replace(event, session_id=session_id, data=value["data"], extra=value["extra"])


def suspicions(text: str) -> Iterator[str]:
    """Yield why a text may still hold a secret: the rule that matches, or a random value's name; never the value."""
    yield from (f"a secret ({rule})" for _, _, rule in find_spans(text.encode("utf-8", "surrogatepass")))
    for match in _ASSIGNED.finditer(text):
        if _is_random(match[2]):
            yield f"a random value behind {match[1].lower()!r}"


def _is_random(value: str) -> bool:
    if not any(map(str.isdigit, value)) or not any(map(str.isalpha, value)):
        return False
    bits = -sum(count / len(value) * math.log2(count / len(value)) for count in Counter(value).values())
    return bits >= (_LEAST_HEX_BITS if _HEX.fullmatch(value) and len(value) >= 32 else _LEAST_BITS)
