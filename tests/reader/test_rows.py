"""Rows: every object of another agent's JSONL file with its place, whatever the bytes are, once."""

import gzip
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.errors import LogNotReadable, Problem
from sessionlog.reader.rows import Rows
from tests.profiles import examples
from tests.sources.homes import _pack

LONG_AGO = 1_700_000_000
PACKINGS = ["", ".gz", ".zst"]


def write(folder, content, name="rows.jsonl", *, old=True):
    """A file of these bytes, packed as its name says."""
    path = Path(folder) / name
    path.write_bytes(content if path.suffix == ".jsonl" else _pack(path.suffix, content))
    if old:
        os.utime(path, (LONG_AGO, LONG_AGO))
    return str(path)


def items(path, **options):
    """(line, start, object or kind) of all that is read."""
    with Rows(path, **options) as rows:
        return [
            (item.line, item.offset, item.kind) if isinstance(item, Problem) else (rows.line, rows.start, item)
            for item in rows.all()
        ]


def values(folder, content, **options):
    """Objects, and kinds of problems."""
    return [item for _, _, item in items(write(folder, content), **options)]


def test_lines_have_numbers_and_places(tmp_path):
    """Blank lines count as lines; a last line without its newline is read."""
    assert items(write(tmp_path, b'{"a":1}\n\n{"b":2}\n{"c":3}')) == [
        (1, 0, {"a": 1}), (3, 9, {"b": 2}), (4, 17, {"c": 3}),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b'\xef\xbb\xbf{"a":1}\n{"b":2}\n', [{"a": 1}, {"b": 2}]),
        (b'{"a":1}\r\n{"b":2}\r\n', [{"a": 1}, {"b": 2}]),
        (b'{ "a" : 1 }\n', [{"a": 1}]),
        ('{"a":"x\u2028y\u2029\x85z"}\n'.encode(), [{"a": "x\u2028y\u2029\x85z"}]),
        (b'{"a":1}{"b":2} {"c":3}\n', [{"a": 1}, {"b": 2}, {"c": 3}]),
        (b'{"a":"\xff"}\n', [{"a": "\ufffd"}, "bad_utf8"]),
        (b'{"a":"\\ud800!"}\n', [{"a": "\ufffd!"}]),
        (b'{"a":1}\x00\x00\n{"b":2}\n\x00\x00\x00', [{"a": 1}, {"b": 2}]),
        (b'\x00\x00\x00{"a":1}\n', ["nul_bytes", {"a": 1}]),
        (b"\x00\x00\n  \n\t\n", []),
        (b"[1]\n3\nnull\n", ["not_object", "not_object", "not_object"]),
        (b'{"a":\n{"b":2}\n', ["not_json", {"b": 2}]),
        (b'{"a":"x\ty\x01"}\n', [{"a": "x\ty\x01"}]),
        (b"[" * 5000 + b"\n", ["too_deep"]),
        (b"", []),
        (b"\n", []),
    ],
)
def test_odd_bytes_are_read_or_named(tmp_path, content, found):
    """As much as can be read is, and the rest has a name."""
    assert values(tmp_path, content) == found


def test_what_is_no_object_has_the_place_of_its_line(tmp_path):
    """Where it begins, and all of its bytes."""
    with Rows(write(tmp_path, b'{"a":1}\n[1]\n')) as rows:
        [_, problem] = rows.read()
        assert (problem.kind, problem.line, problem.offset, problem.length) == ("not_object", 2, 8, 4)


def test_damage_has_its_offset_within_the_line(tmp_path):
    """The bytes that were lost can be looked at."""
    assert items(write(tmp_path, b'{"a":1}\n{"b":2}oops\n{"c":3}\n')) == [
        (1, 0, {"a": 1}), (2, 8, {"b": 2}), (2, 15, "not_json"), (3, 20, {"c": 3}),
    ]  # fmt: skip


@pytest.mark.parametrize(("old", "severity"), [(True, "damage"), (False, "info")])
def test_a_torn_tail_is_damage_once_its_file_is_old(tmp_path, old, severity):
    """A writer may be in the middle of it; no offset passes it."""
    path = write(tmp_path, b'{"a":1}\n{"b":"unfin', old=old)
    with Rows(path) as rows:
        assert list(rows.read()) == [{"a": 1}]
        [torn] = rows.last()
        assert (torn.kind, torn.severity, torn.line, torn.offset, torn.length) == ("torn_tail", severity, 2, 8, 11)
        assert (rows.offset, rows.start) == (8, 8)
        assert list(rows.last()) == []


def test_a_whole_last_line_is_read_apart(tmp_path):
    """It has no newline yet: `read` leaves it, `last` gives it, the offset stays before it."""
    with Rows(write(tmp_path, b'{"a":1}\n{"b":2}')) as rows:
        assert list(rows.read()) == [{"a": 1}]
        assert (rows.line, rows.offset) == (1, 8)
        assert list(rows.last()) == [{"b": 2}]
        assert (rows.line, rows.start, rows.offset) == (2, 8, 8)


def test_places_name_lines(tmp_path):
    """No two lines of a log have one name, and a name is the same when the log is read again."""
    path = write(tmp_path, b'{"a":1}\n{"b":2}\n{"c":3}')
    with Rows(path) as rows:
        places = [rows.line_key for _ in rows.all()]
    assert places == ["rows.jsonl@0", "rows.jsonl@8", "rows.jsonl@16"]
    with Rows(path, offset=8, line=1) as rows:
        assert [rows.line_key for _ in rows.all()] == places[1:]


# --- long lines


@pytest.mark.parametrize("suffix", PACKINGS)
def test_a_line_over_the_limit_is_passed_in_pieces_and_named(tmp_path, suffix):
    """The lines behind it are read, and their places are right."""
    long = b'{"a":"' + b"x" * 3_000_000 + b'"}\n'
    path = write(tmp_path, b'{"a":1}\n' + long + b'{"b":2}\n', f"rows.jsonl{suffix}")
    assert items(path, max_line=100) == [(1, 0, {"a": 1}), (2, 8, "too_long"), (3, 8 + len(long), {"b": 2})]


def test_the_limit_is_of_the_line_without_its_newline(tmp_path):
    """A line of exactly the limit is read, one byte more is too long."""
    assert values(tmp_path, b'{"a":1}\n', max_line=7) == [{"a": 1}]
    assert values(tmp_path, b'{"a":1}', max_line=7) == [{"a": 1}]
    assert values(tmp_path, b'{"a":1}\n', max_line=6) == ["too_long"]
    assert values(tmp_path, b'{"a":1}', max_line=6) == ["too_long"]


@pytest.mark.parametrize("length", [60, 3_000_000])
def test_an_over_long_line_without_an_end_is_named(tmp_path, length):
    """It is not silence, and no offset passes it."""
    path = write(tmp_path, b'{"a":1}\n' + b"x" * length)
    with Rows(path, max_line=50) as rows:
        assert list(rows.read()) == [{"a": 1}]
        [problem] = rows.last()
        assert (problem.kind, problem.line, problem.offset, problem.length) == ("too_long", 2, 8, length)
        assert rows.offset == 8
        assert list(rows.last()) == []


# --- what is wanted


def test_unwanted_lines_are_not_decoded(tmp_path):
    """Nor is their damage; a torn tail is named all the same."""
    path = write(tmp_path, b'{"a":1}\nbroken\n{"b":2}\n{"c":3')
    with Rows(path) as rows:
        found = list(rows.all(lambda line: b'"b"' in line))
        assert (found[0], found[1].kind, len(found)) == ({"b": 2}, "torn_tail", 2)
    with Rows(write(tmp_path, b'{"a":1}\n{"c":3}')) as rows:
        assert list(rows.all(lambda line: b'"b"' in line)) == []


# --- going on

PIECES = st.sampled_from(
    [
        b'{"a":1}',
        b"\n",
        b"\r\n",
        b'{"b":"\xc3\xa9"}\n',
        b"\xef\xbb\xbf",
        b"{",
        b'"',
        b"}",
        b"\x00",
        b"\xff",
        b"[]\n",
        b'{"c":"' + b"y" * 40 + b'"}\n',
    ]
)


@examples(150)
@given(st.lists(PIECES, max_size=12), st.data())
@pytest.mark.parametrize("suffix", PACKINGS)
def test_going_on_anywhere_gives_what_one_pass_gives(tmp_path_factory, suffix, pieces, data):
    """A log is read as far as it goes, grows, and is read on from there: every row once, at its place."""
    folder = tmp_path_factory.mktemp("rows")
    content = b"".join(pieces)
    path = write(folder, content, f"rows.jsonl{suffix}")
    expected = items(path, max_line=30)
    cut = data.draw(st.integers(0, len(content)))
    write(folder, content[:cut], f"rows.jsonl{suffix}")
    found = []
    with Rows(path, max_line=30) as rows:
        for item in rows.read():
            place = (item.line, item.offset, item.kind) if isinstance(item, Problem) else (rows.line, rows.start, item)
            found.append(place)
        offset, line = rows.offset, rows.line
    assert offset <= cut
    assert content[:offset].count(b"\n") == line
    assert content[:offset].endswith(b"\n") or offset == 0
    write(folder, content, f"rows.jsonl{suffix}")
    assert found + items(path, offset=offset, line=line, max_line=30) == expected


def test_an_offset_beyond_the_end_gives_nothing(tmp_path):
    """A log that was cut meanwhile is the business of those who kept the offset."""
    for suffix in PACKINGS:
        assert items(write(tmp_path, b'{"a":1}\n', f"rows.jsonl{suffix}"), offset=500, line=9) == []


@pytest.mark.parametrize("suffix", PACKINGS)
def test_going_on_far_behind_the_beginning(tmp_path, suffix):
    """More bytes go by than are read at a time."""
    line = b'{"a":"' + b"x" * 1000 + b'"}\n'
    path = write(tmp_path, line * 3000 + b'{"b":1}\n', f"rows.jsonl{suffix}")
    assert items(path, offset=3000 * len(line), line=3000) == [(3001, 3000 * len(line), {"b": 1})]


# --- packed logs


@pytest.mark.parametrize("suffix", PACKINGS)
def test_packed_logs_are_read_like_others(tmp_path, suffix):
    """Places are those of the unpacked bytes."""
    path = write(tmp_path, b'{"a":1}\n{"b":2}\n', f"rows.jsonl{suffix}")
    assert items(path) == [(1, 0, {"a": 1}), (2, 8, {"b": 2})]
    assert items(path, offset=8, line=1) == [(2, 8, {"b": 2})]


def test_a_packing_that_ends_early_is_named_after_its_rows(tmp_path):
    """What can be unpacked is read."""
    rows = b"".join(json.dumps({"n": n, "pad": os.urandom(40).hex()}).encode() + b"\n" for n in range(200))
    path = Path(tmp_path) / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(rows)[:-2000])
    os.utime(path, (LONG_AGO, LONG_AGO))
    found = items(str(path))
    assert len(found) > 10
    assert found[0][2]["n"] == 0
    assert found[-1][2] == "bad_compression"
    with Rows(str(path)) as opened:
        [*_, problem] = opened.all()
    assert (problem.kind, problem.length) == ("bad_compression", 0)  # nobody knows how much is missing


@pytest.mark.parametrize("make", [lambda p: None, Path.mkdir, os.mkfifo])
def test_what_is_no_file_is_not_readable(tmp_path, make):
    """Missing, a folder, a pipe."""
    make(tmp_path / "x.jsonl")
    with pytest.raises(LogNotReadable, match=r"x\.jsonl"):
        Rows(str(tmp_path / "x.jsonl"))
