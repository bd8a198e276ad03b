"""Entries: a line each, and whatever is no such line is no entry."""

import json

import pytest

from sessionlog.archive.entry import Entry, KeptFile, entry_of, member_of, version_of

ENTRY = Entry(
    source="native",
    path="/logs/\udcff\n.jsonl",
    version="ab",
    sessions=("s-1", "s-2"),
    files=(
        KeptFile(path="/logs/\udcff\n.jsonl", size=7, mtime_ns=1, bytes=7, sha256="cd"),
        KeptFile(path="/logs/x.db-wal", size=9, mtime_ns=2),
    ),
    archived="2026-11-21T12:00:00.000000Z",
    replaces=("aa",),
)


def test_an_entry_is_one_line_and_comes_back():
    """Also with names that are no text."""
    line = ENTRY.to_json()
    assert (line.isascii(), "\n" in line) == (True, False)
    assert entry_of(line) == entry_of(line.encode()) == ENTRY


@pytest.mark.parametrize(
    "line",
    [
        b"", b"{", b"[]", b"null", b"{}", b"\xff", b"[" * 100_000, ENTRY.to_json()[:-9].encode(),
        json.dumps(json.loads(ENTRY.to_json()) | {"more": 1}).encode(),
        json.dumps(json.loads(ENTRY.to_json()) | {"files": [{}]}).encode(),
        json.dumps(json.loads(ENTRY.to_json()) | {"path": 7}).encode(),
    ],
)  # fmt: skip
def test_what_is_no_entry_is_none(line):
    """A torn or foreign line never raises."""
    assert entry_of(line) is None


def test_what_was_only_looked_at_is_not_kept():
    """Its state tells of changes."""
    assert [file.path for file in ENTRY.kept] == ["/logs/\udcff\n.jsonl"]
    assert ENTRY.bytes == 7
    assert [file.state for file in ENTRY.files] == [("/logs/\udcff\n.jsonl", 7, 1, 0), ("/logs/x.db-wal", 9, 2, 0)]


def test_a_version_names_a_content():
    """The order in which files are told does not matter; any hash, path or source does."""
    version = version_of("pi", "/a", {"/a": "1", "/b": "2"})
    assert version == version_of("pi", "/a", {"/b": "2", "/a": "1"})
    others = {version_of("codex", "/a", {"/a": "1", "/b": "2"}), version_of("pi", "/b", {"/a": "1", "/b": "2"}),
              version_of("pi", "/a", {"/a": "1", "/b": "3"}), version_of("pi", "/a", {"/a": "1"})}  # fmt: skip
    assert len(others | {version}) == 5


@pytest.mark.parametrize(("path", "name"), [("/home/a/x.jsonl", "home/a/x.jsonl"), ("/x", "x"), ("//x//y", "x/y")])
def test_members_are_named_by_the_whole_path(path, name):
    """Without its root."""
    assert member_of(path) == name
