"""One event as one line of JSON for a program to read: the envelope's five keys, then the unknown ones.

ASCII only, without control characters: what acts on a terminal cannot get there, even where nobody looks first.
"""

from __future__ import annotations

import json

from sessionlog.events.encode import encode_object
from sessionlog.events.envelope import Event


def event_json(event: Event) -> str:
    """Return the event's line, without its end; strict JSON, integers of any size keep their digits."""
    value = event.to_dict()
    try:
        line = json.dumps(value, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError):  # not-a-number, or deeper than a reader would follow
        line = json.dumps(json.loads(encode_object(value)), separators=(",", ":"))
    return line.replace("\x7f", "\\u007f")
