"""Segments: the packed arrays by which an index describes the items of one session in one log."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Sequence

NO_TIME = -(1 << 63)
"""The time of an item without one."""

COPY = 0x40
"""Marks the kind of an item that was copied from another session."""


def numbers_of(packed: bytes) -> array[int]:
    """Return the signed numbers of 64 bits that an array holds."""
    found = array("q")
    if len(packed) % found.itemsize:
        raise sqlite3.DatabaseError("a segment is malformed")
    found.frombytes(packed)
    return found


def item_numbers(first: int, last: int, numbers: bytes | None) -> Sequence[int]:
    """Return the numbers of a segment's items, in their order."""
    return range(first, last + 1) if numbers is None else numbers_of(numbers)
