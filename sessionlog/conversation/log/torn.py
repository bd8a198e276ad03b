"""Whether a line that cannot be read is the unfinished beginning of an event, as a killed writer leaves it.

Nothing in such a line was ever acknowledged, wherever it stands: the next writer puts a line break behind it and goes
on. A line that was whole and was damaged later breaks off before its end, save where the damage is in its last letters
or takes the end of its last text away: that cannot be told from a torn one.
"""

from __future__ import annotations

import json
import re

from sessionlog.errors import Problem

_HEAD = b'{"session_id":'
_OPEN_END = re.compile(r"(?:\\u[0-9a-fA-F]{0,4}|-|t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?|\d\.|\d[eE][+-]?)\Z")
"""What may be cut inside a value and is not taken for a text that has no end."""


def is_unfinished(problem: Problem, line: bytes, start: int) -> bool:
    """Whether the problem is that an event in the line that begins at `start` breaks off, whole ones may follow."""
    if problem.kind != "not_json":
        return False
    text = line[problem.offset - start :][: problem.length].rstrip(b"\r\n")
    if not (text.startswith(_HEAD) or _HEAD.startswith(text)):
        return False
    spelled = text.decode("utf-8", "replace")
    try:
        json.loads(spelled)
    except json.JSONDecodeError as error:
        if error.msg.startswith("Unterminated string") or error.pos >= len(spelled):
            return True
        found = _OPEN_END.search(spelled)
        return found is not None and error.pos >= found.start()
    except RecursionError:
        return False
    return False
