"""A log's bytes, unpacked: `.jsonl` as it is, `.gz` and `.zst` decompressed within limits.

A damaged compressed log is read as far as possible, and `Unpacked.failure` gives the reason. A file that unpacks to
more than 200 times its size (after the first 64 MiB) or 4 GiB is a bomb, not a log. A zstd window of more than 64 MiB
is refused: the decoder holds all of it in memory.
"""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from importlib import import_module
from typing import Any, BinaryIO, cast

from sessionlog import files
from sessionlog.errors import MissingExtra

MAX_RATIO = 200
MAX_UNPACKED = 4 << 30
_RATIO_FROM = 64 << 20
_WINDOW_LOG = 26
_WINDOW_TOO_LARGE = "Frame requires too much memory"  # in the message of libzstd's frameParameter_windowTooLarge


class Unpacked(io.RawIOBase):
    """Reads a compressed file up to its end or to damage.

    Attributes:
        failure: Why no more can be read; None without damage.
    """

    def __init__(self, packed: BinaryIO, unpacked: io.BufferedIOBase, size: int) -> None:
        self._packed = packed
        self._unpacked = unpacked
        self._size = max(size, 1)
        self._count = 0
        self.failure: str | None = None

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override] # the stub's buffer is wider
        """Fill `buffer`; 0 at the end or at damage."""
        if self.failure is not None:
            return 0
        try:
            piece = self._unpacked.read1(len(buffer))  # read() would drop the data before the damage
        except EOFError:
            self.failure = "the compressed data end early"
            return 0
        except (OSError, zlib.error, ValueError, _zstd_error()) as error:
            self.failure = describe_damage(error)
            return 0
        self._count += len(piece)
        if self._count > MAX_UNPACKED or (self._count > _RATIO_FROM and self._count > MAX_RATIO * self._size):
            self.failure = f"unpacks to more than {self._count} bytes: not a log"
            return 0
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        """Close both files."""
        if not self.closed:
            self._unpacked.close()
            self._packed.close()
        super().close()


ROW_BUFFER = 32 << 10
"""Bytes to read at once where a single row is wanted: filling a large buffer takes longer than parsing it."""


def open_unpacked(path: str, *, buffer: int = files.BUFFER) -> tuple[BinaryIO, Unpacked | None]:
    """Open a log for reading its lines; the second value is None for uncompressed files.

    Args:
        path: The log.
        buffer: Bytes to read at once.

    Raises:
        LogNotReadable: There is no such file, or it may not be read.
        MissingExtra: A .zst file where no decoder is installed.
    """
    file = files.open_log(path, buffer=buffer)
    if path.endswith(".gz"):
        unpacked = Unpacked(file, gzip.GzipFile(fileobj=file), files.stat_open(file).st_size)
    elif path.endswith(".zst"):
        unpacked = Unpacked(file, _open_zstd(file), files.stat_open(file).st_size)
    else:
        return file, None
    return io.BufferedReader(unpacked, files.BUFFER), unpacked


def _open_zstd(file: BinaryIO) -> io.BufferedIOBase:
    try:
        zstd = zstd_module("reading .zst logs")
    except MissingExtra:
        file.close()
        raise
    return zstd_reader(zstd, file)


def zstd_reader(zstd: Any, file: BinaryIO) -> io.BufferedIOBase:
    """Return a file that unpacks another one; it fails on a window of more than 64 MiB (see `describe_damage`)."""
    options = {zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
    return cast("io.BufferedIOBase", zstd.ZstdFile(file, "rb", options=options))


def describe_damage(error: Exception) -> str:
    """Return why a decoder stopped, and what to do if the data are not damaged."""
    if _WINDOW_TOO_LARGE in str(error):
        limit = (1 << _WINDOW_LOG) >> 20
        return f"a zstd window of more than {limit} MiB: unpack it with `zstd -d --long=31` and read that"
    return f"the compressed data are damaged ({error})"


def zstd_module(what: str) -> Any:
    """Return the standard library's module for zstd, or its backport.

    Raises:
        MissingExtra: There is none; `what` needs it.
    """
    name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtra(f"{what} needs: pip install backports.zstd") from error


def unpack_zstd(data: bytes, limit: int, what: str) -> tuple[bytes, str]:
    """Return the content of a zstd frame in memory, and why it is incomplete; "" when it is complete.

    Raises:
        MissingExtra: There is no decoder; `what` needs it.
    """
    file = io.BytesIO(data)
    unpacked = Unpacked(file, zstd_reader(zstd_module(what), file), len(data))
    with io.BufferedReader(unpacked, files.BUFFER) as whole:
        found = whole.read(limit + 1)
        too_much = f"unpacks to more than {limit} bytes" if len(found) > limit else ""
        return found[:limit], unpacked.failure or too_much


def _zstd_error() -> type[Exception]:
    for name in ("compression.zstd", "backports.zstd"):
        module = sys.modules.get(name)
        if module is not None:
            error: type[Exception] = module.ZstdError
            return error
    return EOFError
