"""Store: the search index beside the ledger, opened only if it can be trusted.

`words` is a full-text index without texts (contentless) and without positions (`detail=none`): it knows which items
have a word, and the logs have the texts. A segment describes many items of one session in one log by packed arrays:
kinds, times, places in the log, and hashes (digests) of the texts. An item's number is never used again; numbers
without a segment are of texts that a log no longer has.

The index holds nothing that could not be read again, but for the words of deleted logs: a damaged one is replaced. A
flipped bit in it would hide texts, and SQLite sees few of them, so each search compares all of it with a checksum. Only
`digests`, which few searches need, is compared by these alone.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from itertools import chain
from zlib import crc32

from sessionlog import files
from sessionlog.errors import LedgerUnusable
from sessionlog.ledger.opening import WAIT_SECONDS, create_tables, one_state
from sessionlog.ledger.trust import file_flaw, has_tables, owner_flaw

APPLICATION = 0x5E5510C7
"""`PRAGMA application_id`, which marks a database as a search index."""

VERSION = 2
"""`PRAGMA user_version`: an index of another version is made anew."""

TOKENIZER = "unicode61 remove_diacritics 2"
"""Words are letters and digits, without regard to case and accents."""

_HASH_BYTES = 16 << 20
_BESIDE = ("", "-wal", "-shm", "-journal")

WORDS = f"CREATE VIRTUAL TABLE words USING fts5(text, content='', columnsize=0, detail=none, tokenize='{TOKENIZER}')"

SCHEMA = f"""
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE logs (
    id INTEGER PRIMARY KEY,
    path ANY NOT NULL UNIQUE,
    source TEXT NOT NULL,
    parser INTEGER NOT NULL,
    device INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL,
    beside TEXT NOT NULL,
    settled INTEGER NOT NULL,
    missing INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    line INTEGER NOT NULL,
    prefix TEXT NOT NULL,
    state BLOB NOT NULL,
    stamp INTEGER NOT NULL
) STRICT;

CREATE TABLE segments (
    id INTEGER PRIMARY KEY,
    log_id INTEGER NOT NULL,
    session TEXT NOT NULL,
    is_tail INTEGER NOT NULL,
    count INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    first_ns INTEGER NOT NULL,
    last_ns INTEGER NOT NULL,
    numbers BLOB,
    kinds BLOB NOT NULL,
    times BLOB NOT NULL,
    places BLOB NOT NULL,
    digests BLOB NOT NULL
) STRICT;

CREATE INDEX segments_by_log ON segments(log_id);

CREATE INDEX segments_by_number ON segments(first, last, first_ns, last_ns);

CREATE TABLE digests (
    digest INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    PRIMARY KEY (digest, segment)
) STRICT, WITHOUT ROWID;

{WORDS};
"""
"""`numbers` of a segment: NULL where they are `first`, `first + 1` … `last`. `digests` finds the segments that have an
item with a text, among them the original of a copy. A search reads an index of `segments` instead of its long rows."""

_TABLES = (
    *SCHEMA.split(";\n"),
    f"INSERT INTO words (words, rank) VALUES ('hashsize', {_HASH_BYTES})",  # noqa: S608 - a number
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)


FORGET_CHECKSUMS = "DELETE FROM meta WHERE name IN ('checksum', 'digests')"

_COMPARED = (
    "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_schema ORDER BY name",
    "SELECT name, value FROM meta WHERE name IN ('next', 'dead') ORDER BY name",
    "SELECT * FROM logs ORDER BY id",
    "SELECT path, id FROM logs INDEXED BY sqlite_autoindex_logs_1 ORDER BY path",
    "SELECT * FROM segments ORDER BY id",
    "SELECT log_id, id FROM segments INDEXED BY segments_by_log ORDER BY log_id, id",
    "SELECT first, last, first_ns, last_ns, id FROM segments INDEXED BY segments_by_number ORDER BY 1, 2, 3, 4, 5",
    "SELECT * FROM words_config ORDER BY k",
    "SELECT * FROM words_idx ORDER BY segid, term",
    "SELECT * FROM words_data ORDER BY id",
)
"""All that searches and updates read, also by an index, which may differ from its table."""

_DIGESTS = "SELECT count(*), ifnull(sum((digest & 0xffffffff) + 3 * (digest >> 32) + 7 * segment), 0) FROM digests"
_REFUSALS = frozenset({
    sqlite3.SQLITE_PERM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL,
})  # fmt: skip
_OURS = frozenset({"meta", "logs", "segments", "digests", "words"})


class _OtherVersion(sqlite3.DatabaseError):
    """The index is whole, but of another version."""

    def __init__(self, version: int) -> None:
        super().__init__(f"version {version}")
        self.version = version


def index_path(ledger: str) -> str:
    """Return where the search index of a ledger is: beside it."""
    stem, suffix = os.path.splitext(ledger)
    return f"{stem}-search{suffix or '.sqlite3'}"


def open_index(path: str) -> tuple[sqlite3.Connection, str]:
    """Return the index at a path, and a sentence if it had to be replaced; a missing one is created, empty.

    Raises:
        LedgerUnusable: It cannot be opened, is not the user's alone, or is another program's database.
    """
    try:
        try:
            return _open(path), ""
        except _OtherVersion as error:
            return replace_index(path, f"of {'an older' if error.version < VERSION else 'another'} version")
        except sqlite3.DatabaseError as error:
            if _is_refused(error):
                raise
            return replace_index(path, f"damaged ({error})")
    except (OSError, sqlite3.Error) as error:
        if isinstance(error, LedgerUnusable):
            raise
        raise LedgerUnusable(f"{path}: {files.reason_of(error)}") from error


def store_checksums(connection: sqlite3.Connection) -> None:
    """Store the checksums of what is committed; the full-text index writes what it has only when it is.

    Whoever changes the index takes them out (`FORGET_CHECKSUMS`), so that an index without them is not compared.

    Raises:
        sqlite3.OperationalError: Another process is writing.
    """
    connection.execute("BEGIN IMMEDIATE")
    found = {"checksum": _content(connection), "digests": _digests(connection)}
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", found.items())
    connection.execute("COMMIT")


def check_digests(connection: sqlite3.Connection) -> None:
    """Compare `digests` with its checksum.

    Raises:
        sqlite3.DatabaseError: It is damaged.
    """
    _compare(connection, {"digests": _digests(connection)})


def _digests(connection: sqlite3.Connection) -> int:
    return crc32(repr(connection.execute(_DIGESTS).fetchone()).encode())


def _content(connection: sqlite3.Connection) -> int:
    found = 0
    for value in chain.from_iterable(row for select in _COMPARED for row in connection.execute(select)):
        data = value if isinstance(value, bytes) else repr(value).encode()
        found = crc32(data, crc32(b"%d " % len(data), found))
    return found


def _compare(connection: sqlite3.Connection, found: Mapping[str, int]) -> None:
    stored = dict(connection.execute("SELECT name, value FROM meta").fetchall())
    for name, value in found.items():
        if stored.get(name, value) != value:
            raise sqlite3.DatabaseError("its content differs from its checksum")


def is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether an error is due to the content of a database, not to a lock or a full disk."""
    signs = ("malformed", "corrupt", "no such table", "no such column", "no such index")
    return type(error) is sqlite3.DatabaseError or any(sign in str(error) for sign in signs)


def _is_refused(error: sqlite3.DatabaseError) -> bool:
    """Whether the system keeps an index from being read, whatever its content: a lock, a full disk, a permission."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF in _REFUSALS


def replace_index(path: str, why: str) -> tuple[sqlite3.Connection, str]:
    """Delete an index that cannot be used; return a new, empty one, and a sentence with the reason."""
    for suffix in _BESIDE:
        files.remove_file(path + suffix)
    return _open(path), f"the search index was {why} and is made anew: {path}"


def _open(path: str) -> sqlite3.Connection:
    folder = os.path.dirname(os.path.abspath(path))
    files.make_directories(folder)
    files.make_private(path)
    for flaw in (file_flaw(path), owner_flaw(folder)):
        if flaw is not None:
            raise LedgerUnusable(flaw)
    connection = sqlite3.connect(f"file:{_escaped(path)}", uri=True, isolation_level=None, timeout=WAIT_SECONDS)
    try:
        _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _escaped(path: str) -> str:
    return "".join(f"%{byte:02x}" for byte in os.fsencode(os.path.abspath(path)))


def _prepare(connection: sqlite3.Connection, path: str) -> None:
    """Check the kind of the file, and create the tables of an empty one."""
    with one_state(connection):
        is_empty = not has_tables(connection)
        [(application,)] = connection.execute("PRAGMA application_id")
    if is_empty:
        create_tables(connection, _TABLES)
    elif application != APPLICATION:
        if not _OURS.issubset(name for (name,) in connection.execute("SELECT name FROM sqlite_schema")):
            raise LedgerUnusable(f"{path} is another program's database")
        raise sqlite3.DatabaseError("its application_id is not ours")
    with files.open_log(path) as file:
        header = file.read(20)
    if header[18:19] != header[19:20]:
        raise sqlite3.DatabaseError("its header is not ours")  # SQLite would only read it
    [(version,)] = connection.execute("PRAGMA user_version")
    code = connection.execute("SELECT name FROM sqlite_schema WHERE type IN ('trigger', 'view')").fetchone()
    if code is not None:
        raise sqlite3.DatabaseError(f"{code[0]} is not ours")
    if version != VERSION:
        raise _OtherVersion(version)
    connection.execute("BEGIN")  # one state of the index, whatever others commit
    _compare(connection, {"checksum": _content(connection)})
    connection.execute("COMMIT")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA cache_size = -16384")
