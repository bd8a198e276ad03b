"""Recall: what a ledger of remote logs knows of objects that have not changed, so that they are not opened again.

The source of a log is in its row. Files of no known agent have none: of these, fingerprints are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sessionlog import files
from sessionlog._version import __version__
from sessionlog.errors import Problem
from sessionlog.hashes import blake2b
from sessionlog.ledger.identity import stored_path
from sessionlog.sources.protocol import Log
from sessionlog.sources.registry import all_sources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sessionlog.ledger.book import Book

_ROW = "SELECT source, device, inode, size, ctime_ns FROM files WHERE path = ?"
_DIGITS = 16


class Recalled:
    """The sources of unchanged remote logs, and the unchanged remote files without one."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._readers = " ".join((__version__, *(f"{one.id}/{one.parser_version}" for one in all_sources())))
        kept = book.meta("unrecognised") or ""
        if book.meta("unrecognised_by") != self._readers:  # another version may know them
            kept = ""
        self._kept = {kept[at : at + _DIGITS] for at in range(0, len(kept), _DIGITS)}
        self._found: set[str] = set()

    def source_of(self, path: str) -> str | None:
        """Return the source of an unchanged remote log, "" for an unchanged file without one, else None."""
        status = files.stat_path(path) if files.is_url(path) else None
        if status is None:
            return None
        row = self._book.connection.execute(_ROW, (stored_path(path),)).fetchone()
        if row is not None:
            state = status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns
            return str(row[0]) if files.is_directory(path) or row[1:] == state else None
        return "" if _fingerprint(path) in self._kept else None

    def noted(self, found: Iterable[Log | Problem]) -> Iterator[Log | Problem]:
        """Yield what is found, and remember the remote files of no known agent."""
        for item in found:
            if isinstance(item, Problem) and item.kind == "unknown_format" and files.is_url(item.path):
                self._found.add(_fingerprint(item.path))
            yield item

    def write(self, paths: Sequence[str]) -> None:
        """Store what was remembered, and the places that the ledger is of."""
        if self._found == self._kept and self._book.meta("places") is not None:
            return
        self._book.connection.execute("BEGIN IMMEDIATE")
        try:
            self._book.set_meta("unrecognised", "".join(sorted(self._found)))
            self._book.set_meta("unrecognised_by", self._readers)
            self._book.set_meta("places", "\n".join(ascii(path)[1:-1] for path in paths))
            self._book.commit()
        finally:
            if self._book.connection.in_transaction:
                self._book.connection.execute("ROLLBACK")


def _fingerprint(path: str) -> str:
    status = files.stat_path(path)
    state = "" if status is None else f"{status.st_size}.{status.st_ctime_ns}"
    return blake2b(f"{path}\0{state}".encode("utf-8", "surrogatepass"), digest_size=_DIGITS // 2).hexdigest()
