"""Random changes of an input: of its bytes, of the values in its JSON rows, of the cells of a database.

Coverage guides which inputs are kept; these changes keep enough of a format's shape for an input to get past its first
check.
"""

import json
import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

_DATABASE = b"SQLite format 3\x00"
_MOST_BYTES = 1 << 16
_BYTES = (
    b"\x00", b"\xff", b"\xef\xbb\xbf", b"\r\n", b"\n", b"{", b"}", b"[", b"]", b'"', b"\\", b"\\ud800", b"\x1b[2J",
    b"\xe2\x80\xae", b"null", b"NaN", b"1e999", b"-1", b"\xed\xa0\x80", b",", b":", b"..", b"[" * 1200,
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**53, 2**63, -(2**63), 10**30, 1.5, -0.5, 1e308, "", "0", "12", "-3", "x", "1e5",
    "2026-11-21T10:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z", "\x00", "\x1b]0;x\x07", "\u202e", "é",
    "\ud800", "/", "..", "a" * 5000, [], {}, [[]], [None], [{}], {"": None}, {"type": 7}, {"type": "text", "text": 5},
    1_700_000_000, 1_700_000_000_000, 1_700_000_000_000_000_000, 253_402_300_800_000,
)  # fmt: skip


def change(data: bytes, chance: random.Random, others: Sequence[bytes] = (), header: int = 0) -> bytes:
    """Return an input made from `data`, sometimes with a part of another one; its header stays."""
    head, body = data[:header], data[header:]
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        body = _changed(body, chance, [other[header:] for other in chance.sample(others, min(1, len(others)))])
    return head + body[:_MOST_BYTES]


def _changed(body: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    kind = chance.random()
    if body.startswith(_DATABASE) and kind < 0.7:
        return _cell_changed(body, chance)
    if kind < 0.5:
        return _row_changed(body, chance)
    if kind < 0.7:
        return _lines_changed(body, chance, others)
    return _bytes_changed(body, chance, others)


def _bytes_changed(body: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    changed = bytearray(body)
    at = chance.randrange(len(changed) + 1)
    match chance.randrange(6):
        case 0:
            del changed[at : at + chance.choice((1, 2, 8, 40, 400))]
        case 1:
            changed[at:at] = chance.choice(_BYTES)
        case 2:
            changed[at : at + 1] = bytes([chance.randrange(256)])
        case 3 if at < len(changed):
            changed[at] ^= 1 << chance.randrange(8)
        case 4 if others:
            other = others[0]
            begin = chance.randrange(len(other) + 1)
            changed[at:at] = other[begin : begin + chance.choice((1, 8, 64, 512, 4096))]
        case _:
            del changed[at:]
    return bytes(changed)


def _lines_changed(body: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    lines = body.splitlines(keepends=True)
    if not lines:
        return body
    at = chance.randrange(len(lines))
    match chance.randrange(4):
        case 0:
            lines.insert(at, chance.choice(lines))
        case 1:
            del lines[at]
        case 2 if others and (theirs := others[0].splitlines(keepends=True)):
            lines.insert(at, chance.choice(theirs))
        case _:
            other = chance.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
    return b"".join(lines)


def _row_changed(body: bytes, chance: random.Random) -> bytes:
    """One value in one row, or in a file that is one JSON document, is another one."""
    lines = body.splitlines(keepends=True)
    at = chance.randrange(len(lines)) if lines else 0
    for begin, end in ((at, at + 1), (0, len(lines))):
        try:
            value = json.loads(b"".join(lines[begin:end]))
        except (ValueError, RecursionError):
            continue
        made = json.dumps(_value_changed(value, chance), separators=(",", ":")).encode()
        return b"".join((*lines[:begin], made, b"\n", *lines[end:]))
    return _bytes_changed(body, chance, ())


def _value_changed(value: Any, chance: random.Random, depth: int = 0) -> Any:
    if not value or not isinstance(value, dict | list) or chance.random() < 0.1 * depth:
        return chance.choice(_VALUES)
    if isinstance(value, list):
        at = chance.randrange(len(value))
        return [*value[:at], _value_changed(value[at], chance, depth + 1), *value[at + 1 :]]
    key = chance.choice(list(value))
    if chance.random() < 0.1:
        return {name: item for name, item in value.items() if name != key}
    return value | {key: _value_changed(value[key], chance, depth + 1)}


def _cell_changed(body: bytes, chance: random.Random) -> bytes:
    """One cell of a database is another value; damage that SQLite does not get past is left to the other changes."""
    try:
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.deserialize(body)
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            table = _quoted(chance.choice(tables))
            rows = connection.execute(f"SELECT rowid, * FROM {table} LIMIT 50")
            columns = [_quoted(column[0]) for column in rows.description[1:]]
            rowid, *cells = chance.choice(rows.fetchall())
            at = chance.randrange(len(columns))
            new = _text_changed(cells[at], chance)
            connection.execute(f"UPDATE {table} SET {columns[at]} = ? WHERE rowid = ?", (new, rowid))
            connection.commit()
            return connection.serialize()
    except (sqlite3.Error, IndexError, UnicodeError, OverflowError):
        return _bytes_changed(body, chance, ())


def _text_changed(cell: Any, chance: random.Random) -> Any:
    if isinstance(cell, str) and cell[:1] in {"{", "["} and chance.random() < 0.8:
        return _row_changed(cell.encode("utf-8", "surrogatepass"), chance).decode("utf-8", "replace")
    new = chance.choice(_VALUES)
    return json.dumps(new) if isinstance(new, dict | list) else new


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
