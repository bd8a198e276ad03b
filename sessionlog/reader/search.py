"""Search: where bytes stand in bytes, at the speed of the memory.

Scanning is mostly proving that something is *not* in a line, and CPython's own search of several bytes (before 3.13
about 0.8 GB/s) would cost more than everything else. With the extra `[fast]` stringzilla searches, else the C library's
`memmem`, else Python: the answer is the same, `bytes.find`'s, and the tests run all three.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

Find = Callable[[bytes, bytes, int, int], int]
"""(data, needle, start, end) → where the needle begins inside data[start:end], -1 for nowhere; 0 <= start."""

_PAYS_LIBC = 1 << 14
"""Bytes from which on a foreign call of 2 us pays: for blocks of lines, not for lines."""

_PAYS_FAST = 128
"""The same where a call costs 0.2 us."""


def python_find(data: bytes, needle: bytes, start: int, end: int) -> int:
    """Search with `bytes.find`."""
    return data.find(needle, start, end)


def _libc_find() -> Find | None:
    """Search with the C library's memmem, where there is one."""
    if sys.platform == "win32":
        return None
    import ctypes  # noqa: PLC0415 - only where it is the best there is

    try:
        memmem = ctypes.CDLL(None).memmem
    except (OSError, AttributeError):
        return None
    memmem.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)
    memmem.restype = ctypes.c_void_p
    pointer, address_of = ctypes.c_char_p, ctypes.cast
    void = ctypes.c_void_p

    def find(data: bytes, needle: bytes, start: int, end: int) -> int:
        end = min(end, len(data))  # before anything else: the C library does not know where the data end
        if end - start < _PAYS_LIBC:
            return data.find(needle, start, end)
        base: int = address_of(pointer(data), void).value or 0
        found = memmem(base + start, end - start, needle, len(needle))
        return -1 if found is None else found - base

    return find


def _stringzilla_find() -> Find | None:
    """Search with stringzilla, where the extra `[fast]` is installed."""
    try:
        search: Any = import_module("stringzilla").find
    except (ImportError, AttributeError):
        return None

    def find(data: bytes, needle: bytes, start: int, end: int) -> int:
        if end - start < _PAYS_FAST:
            return data.find(needle, start, end)
        found: int = search(data, needle, start, end)
        return found

    return find


def searchers() -> dict[str, Find]:
    """Return what there is on this machine, the fastest first."""
    known = {"stringzilla": _stringzilla_find(), "libc": _libc_find(), "python": python_find}
    return {name: find for name, find in known.items() if find is not None}


find: Find = next(iter(searchers().values()))
"""The fastest of them."""
