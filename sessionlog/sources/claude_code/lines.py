r"""Rows that are measured without decoding them: long ones, whose bytes are texts that nobody counts.

What tools gave back fills most of a transcript, and the CLI writes it twice. Such a row, spelled exactly as the CLI
spells it, is accounted for by its beginning and the pieces around its text; `take` refuses every other row, and it is
decoded. Both ways lead to the same account; the tests demand it.

Why that is sound: inside a JSON string every quote is escaped, so a piece of a row that begins and ends with bare
quotes is structure, never text. A second row glued to a torn one is seen by its own beginning. What is not looked for
is damage inside the second copy of a text, or a key that is told twice: such a row counts as it stands.
"""

from __future__ import annotations

import re
from typing import Any, Protocol

import orjson

LONG = 6000
"""Bytes from which on looking is cheaper than decoding."""

_TEXT = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_HEAD = re.compile(
    rb'\{"parentUuid":(?:null|"[^"\\]*"),("isSidechain":(?:true|false),"userType":"external","cwd":' + _TEXT
    + rb',"sessionId":"[^"\\]+","version":"[^"\\]*","gitBranch":' + _TEXT + rb',(?:"agentId":"[^"\\]*",)?'
    rb'(?:"slug":"[^"\\]*",)?)"type":"(?:user","message":\{"role":"user","content":\[\{"tool_use_id":"([^"\\]{1,200})",'
    rb'"type":"tool_result","content":(?=")|progress","data":\{"type":"(?!agent_progress")[a-z_]+",)'
)  # fmt: skip
_END = b'}]},"uuid":"'
_STAMP = re.compile(rb'[^"\\]*","timestamp":"([^"\\]*)"(?:\}\r?\n|,"toolUseResult":)')
_FAILED, _FINE = b',"is_error":true', b',"is_error":false'
_SNAPSHOT = re.compile(rb'\{"type":"file-history-snapshot","messageId":"[^"\\]*","snapshot":\{')
_OTHERS = (b'{"parentUuid":', b'{"type":"file-history-snapshot"')
_WHOLE = (b"}\n", b"}\r\n")


class Taker(Protocol):
    """What accounts for the rows."""

    def take_result(self, row: dict[str, Any], key: str, *, failed: bool, output_bytes: int) -> None:
        """Account for a tool's result; `row` has only its beginning and its time."""


def take(scan: Taker, line: bytes) -> bool:
    """Account for a row; False when it has to be decoded."""
    head = _HEAD.match(line)
    if head is None or not line.endswith(_WHOLE):
        snapshot = head is None and _SNAPSHOT.match(line) is not None
        return snapshot and line.endswith(_WHOLE) and _is_alone(line, 1)
    told, key = head.groups()
    if key is None:
        return _is_alone(line, head.end())
    start = head.end()
    stop = line.find(_END, start)
    stamp = _STAMP.match(line, stop + len(_END)) if stop > 0 else None
    if stamp is None or not _is_alone(line, stamp.end()):
        return False
    failed = line.startswith(_FAILED, stop - len(_FAILED))
    if failed:
        stop -= len(_FAILED)
    elif line.startswith(_FINE, stop - len(_FINE)):
        stop -= len(_FINE)
    try:
        text = orjson.loads(line[start:stop])  # one string, or this is not what it looks like
        row = orjson.loads(b'{%s"timestamp":"%s"}' % (told, stamp.group(1)))
    except ValueError:
        return False
    if not isinstance(text, str):
        return False
    size = len(text) if text.isascii() else len(text.encode())
    scan.take_result(row, key.decode("utf-8", "replace"), failed=failed, output_bytes=size)
    return True


def _is_alone(line: bytes, place: int) -> bool:
    """Whether no other row begins in a line from that place on."""
    return all(line.find(other, place) < 0 for other in _OTHERS)
