"""Parquet run: one export to a destination, from the rows that have changed to the manifest that makes them count.

What a kill leaves at any moment: files that no manifest lists, which are not read; or a manifest that lists all of
them, and a database that does not know it yet, which reads it first the next time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import groupby, islice
from typing import Any

from sessionlog.engine.place_manifest import File
from sessionlog.errors import NotExported
from sessionlog.export.destination import Destination
from sessionlog.export.ledger_rows import LedgerRow, LedgerRows
from sessionlog.export.manifests import Manifest
from sessionlog.export.parquet_files import Month, ParquetEncoder, line_columns
from sessionlog.export.revisions import PAGE, Revisions, Written
from sessionlog.ledger.parquet_schema import NAMES, SCHEMA_VERSION, TABLES

Progress = Callable[[int, int], None]

NO_TIME = "__HIVE_DEFAULT_PARTITION__"
"""The month of what has no time, as Hive, Spark and DuckDB write null."""

MOST_ROWS = 50_000
"""Rows of a file of changes, for which DuckDB needs 100 MB."""

_MOST_PARTS = 24
"""Files of a table and month that are left as they are: about a day of hourly exports."""

_MERGED_ROWS = 500_000
"""Rows after which a merged file ends; one with half of them is not merged again."""

_STANDING = ("counts", "replaced")
_COSTS = ("estimated_nano_usd", "saved_nano_usd", "price_list")


class ParquetRun:
    """One export: files of new rows, merged files, and the list of all files that hold.

    Args:
        target: The destination.
        machine: The machine's id.
        newest: Its newest manifest there.
        revisions: What the destination has.
        encoder: Makes the files.
        is_dry: Count what would be written, and write nothing.

    Attributes:
        counts: Table → rows written; `deleted` → tombstones.
        replaced: Rows that the destination had before, and of which it now has a later revision.
        written: The files of new rows.
        merged: How many files were replaced by merged ones.
        notes: Sentences about files that could not be merged.
    """

    def __init__(
        self,
        target: Destination,
        machine: str,
        newest: Manifest,
        revisions: Revisions,
        encoder: ParquetEncoder,
        *,
        is_dry: bool,
    ) -> None:
        self._target, self._machine, self._is_dry = target, machine, is_dry
        self._revisions, self._encoder = revisions, encoder
        self._files = list(newest.files)
        self.counts = dict.fromkeys((*TABLES, "deleted"), 0)
        self.replaced = 0
        self.written: list[File] = []
        self.merged = 0
        self.notes: list[str] = []
        self._price_lists: dict[str, int] = {}

    def read(self, files: Iterable[File]) -> None:
        """Note the rows of files that are not known: of an export that was killed, for example.

        Raises:
            NotExported: One cannot be read, or is not the file that the manifest lists.
        """
        for file in files:
            try:
                self._revisions.add(file["table"], self._rows_of(file))
            except NotExported as error:
                what = f"the manifest of machine {self._machine} lists {file['path']}"
                raise NotExported(f"{error}; {what}: without the manifest, all is written again") from error

    def write_changes(
        self,
        rows: LedgerRows,
        price_list: str,
        sessions: Sequence[int] | None,
        *,
        has_tombstones: bool,
        has_earlier: bool,
        sent: Progress | None,
    ) -> None:
        """Write the rows that are new or have changed: of these sessions, or of all.

        Args:
            rows: The ledger's rows.
            price_list: The version of the prices of its estimates.
            sessions: The sessions that may have changed; None for all.
            has_tombstones: What the ledger does not have was deleted in it.
            has_earlier: There may be rows that this ledger never had; these were not deleted.
            sent: Called with (rows read, rows in all).
        """
        done, total = 0, rows.count(sessions)
        for table in TABLES:
            found = rows.read(table, sessions)
            while page := list(islice(found, PAGE)):
                for row, after, stone in self._revisions.changes(table, page, price_list):
                    self.counts[table] += 1
                    self.replaced += after.revision > 1
                    self._add(table, after, row)
                    if stone is not None:
                        self._add_tombstone(table, stone)
                done += len(page)
                if sent is not None and total:
                    sent(min(done, total), total)
            stones = self._revisions.tombstones(table, sessions, has_earlier=has_earlier) if has_tombstones else ()
            for stone in stones:
                self.replaced += 1
                self._add_tombstone(table, stone)
            self._end_files(table)
        if sent is not None and total:
            sent(total, total)

    def merge(self, *, most_parts: int = _MOST_PARTS) -> None:
        """Merge the files of each table and month of which there are more than `most_parts`."""
        by_folder = sorted(self._files, key=_folder)
        for folder, group in groupby(by_folder, key=_folder):
            files = [file for file in group if file["rows"]]
            small = [file for file in files if file["rows"] < _MERGED_ROWS // 2]
            if len(small) > most_parts:
                self._merge(folder, small, is_whole=len(small) == len(files))

    def _merge(self, folder: str, files: Sequence[File], *, is_whole: bool) -> None:
        """Replace files of one folder by as few as possible."""
        table = files[0]["table"]
        parts: list[list[File]] = [[]]
        for file in files:
            if parts[-1] and sum(one["rows"] for one in parts[-1]) + file["rows"] > _MERGED_ROWS:
                parts.append([])
            parts[-1].append(file)
        for part in parts:
            if len(part) < 2:
                continue
            try:
                found = map(self._read_checked, part)
                count, data = self._encoder.merge(table, found, is_whole=is_whole and len(parts) == 1)
            except NotExported as error:
                self.notes.append(f"not merged: {error}")
                continue
            gone = {file["path"] for file in part}
            self._files = [file for file in self._files if file["path"] not in gone]
            if count:
                self._write(folder, table, count, data)
            self.merged += len(part)

    def list_files(self) -> list[File]:
        """Return all files that hold; a table without rows has an empty one, for readers to find its columns."""
        for table in TABLES:
            if any(file["rows"] for file in self._files if file["table"] == table):
                self._files = [file for file in self._files if file["table"] != table or file["rows"]]
            elif not any(file["table"] == table for file in self._files):
                self._write(self._path(table, None), table, *self._encoder.encode(table, None))
        return self._files

    def _add(self, table: str, after: Written, row: LedgerRow) -> None:
        names, values = row.names, row.values
        costs: tuple[int | None, ...] = ()
        if row.costs:
            costs = (after.estimate, after.saved)
            has_costs = after.price_list is not None and costs != (None, None)
            names = (*names, self._price_list(table, str(after.price_list)) if has_costs else None)
        line = (
            *names, after.id, after.revision, False, after.state, *row.standing, *values[:_BEFORE_COSTS], *costs,
            *values[_BEFORE_COSTS:],
        )  # fmt: skip
        self._add_line(table, after.month, line)

    def _add_tombstone(self, table: str, stone: Written) -> None:
        self.counts["deleted"] += 1
        names = [None] * len(NAMES[table])
        others = [None] * (len(line_columns(table)) - len(names) - 4)
        self._add_line(table, stone.month, (*names, stone.id, stone.revision, True, 0, *others))

    def _add_line(self, table: str, month: Month, line: Sequence[Any]) -> None:
        if self._encoder.add(table, month, line) >= MOST_ROWS:
            self._end_file(table, month)
        if self._encoder.is_full():
            self._end_files(table)

    def _price_list(self, table: str, version: str) -> int:
        if version not in self._price_lists:
            self._price_lists[version] = self._encoder.name(table, "prices", [version])
        return self._price_lists[version]

    def _end_files(self, table: str) -> None:
        for month in self._encoder.months(table):
            self._end_file(table, month)

    def _end_file(self, table: str, month: Month) -> None:
        """Write the rows that wait for a month."""
        self.written.append(self._write(self._path(table, month), table, *self._encoder.encode(table, month)))

    def _write(self, folder: str, table: str, count: int, data: bytes) -> File:
        """Write a file, named for its content: a second try after a kill gives the same one."""
        digest = sha256(data).hexdigest()
        path = f"{folder}/{digest[:32]}.parquet"
        if not self._is_dry:
            self._target.write(path, data)
        file: File = {
            "path": path, "table": table, "rows": count, "bytes": len(data), "sha256": digest, "schema": SCHEMA_VERSION,
        }  # fmt: skip
        self._files.append(file)
        return file

    def _path(self, table: str, month: Month) -> str:
        text = NO_TIME if month is None else f"{month // 12:04d}-{month % 12 + 1:02d}"
        return f"{table}/v={SCHEMA_VERSION}/month={text}/machine={self._machine}"

    def _read_checked(self, file: File) -> bytes:
        """Return a file of the destination.

        Raises:
            NotExported: It cannot be read, or is not the file that the manifest lists.
        """
        data = self._target.read(file["path"])
        if sha256(data).hexdigest() != file["sha256"]:
            raise NotExported(f"{self._target.place}/{file['path']} is damaged: its digest is not that of the manifest")
        return data

    def _rows_of(self, file: File) -> Iterator[Written]:
        table, month = file["table"], _month_of(file["path"])
        flags, costs = (
            [_typed(table, column) if column in TABLES[table] else "NULL" for column in some]
            for some in (_STANDING, _COSTS)
        )
        own = (_typed(table, column) for column in ("record", "revision", "deleted", "state"))
        columns = ", ".join((*own, *flags, *costs))
        for record, revision, deleted, state, counts, replaced, *known in self._encoder.decode(
            self._read_checked(file), columns
        ):
            standing = bool(counts) + 2 * bool(replaced)
            yield Written(record, revision, deleted, month, state, standing, *known)


_BEFORE_COSTS = (
    [name for name in line_columns("usage") if name not in _STANDING].index("estimated_nano_usd")
    - 4
    - len(NAMES["usage"])
)
"""How many of a response's values stand before its costs."""


def _typed(table: str, column: str) -> str:
    """Return the expression of a column as an export writes it: the file may be of another program."""
    return f"{column}::{TABLES[table][column]}"


def _folder(file: File) -> str:
    return file["path"].rpartition("/")[0]


def _month_of(path: str) -> Month:
    """Return the month in the path of a file."""
    [text] = [part.removeprefix("month=") for part in path.split("/") if part.startswith("month=")]
    if text == NO_TIME:
        return None
    year, _, month = text.partition("-")
    return int(year) * 12 + int(month) - 1
