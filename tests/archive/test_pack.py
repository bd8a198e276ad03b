"""Packs: what goes in comes out, byte for byte; what should not be in one does not come out."""

import hashlib
import io
import json
import os
import subprocess
import tarfile

import pytest

from sessionlog import files
from sessionlog.archive.entry import Entry, KeptFile, member_of
from sessionlog.archive.pack import Content, is_whole, read_own_lines, unpack, write_pack, write_shared
from sessionlog.errors import LogNotReadable
from sessionlog.reader.unpack import zstd_module

LONG_AGO_NS = 1_700_000_000_123_456_789


def content(path, given):
    """Bytes to keep under a name."""
    return Content(path=path, mtime_ns=LONG_AGO_NS, given=given, length=len(given))


def entry_for(*contents):
    """An entry that says exactly what is in these."""
    kept = tuple(
        KeptFile(path=one.path, size=one.length, mtime_ns=one.mtime_ns, bytes=one.length, sha256=one.hashed()[0])
        for one in contents
    )
    return Entry(source="pi", path=contents[0].path, version="v", sessions=(), files=kept, archived="now")


def pack_of(folder, *contents):
    """(path, entry) of a new pack."""
    entry = entry_for(*contents)
    path = str(folder / "v.tar.zst")
    files.replace_files([(write_pack(path, entry, contents), path)])
    return path, entry


NAMES = [
    "/a/b.jsonl",
    "/" + "d" * 100,
    "/" + "d" * 101,
    "/a/" + "d" * 200 + "/" + "n" * 200,
    "/a/no text \udcff",
    "/a/ünïcode ☃",
    "/a/new\nline",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 3_000_000])
def test_what_goes_in_comes_out(tmp_path, name, size):
    """Of any size, under any name, with the time that it had."""
    given = (b"0123456789" * (size // 10 + 1))[:size]
    path, entry = pack_of(tmp_path, content(name, given), content("/other", b"x"))
    assert is_whole(path, entry)
    out = tmp_path / "out"
    out.mkdir()
    unpack(path, entry, str(out))
    copy = os.path.join(out, *member_of(name).split("/"))
    with open(copy, "rb") as file:
        assert file.read() == given
    assert os.stat(copy).st_mtime_ns == LONG_AGO_NS


def test_a_pack_can_be_opened_without_us(tmp_path):
    """By `tar`, once it is unpacked."""
    path, _ = pack_of(tmp_path, content("/a/b", b"hello"))
    with open(path, "rb") as file:
        tar = zstd_module("the test").decompress(file.read())
    listed = subprocess.run(["tar", "-tf", "-"], input=tar, capture_output=True, check=True).stdout
    assert listed == b"entry.json\na/b\n"


def test_a_pack_holds_its_own_line(tmp_path):
    """So that a manifest can be made again."""
    path, entry = pack_of(tmp_path, content("/a/b", b"hello"))
    assert list(read_own_lines(path)) == [(entry.to_json().encode(), os.path.getsize(path))]
    (tmp_path / "empty").write_bytes(b"")
    for name in ("empty", "none"):
        assert list(read_own_lines(str(tmp_path / name))) == [(b"", 0)]


def test_every_flipped_bit_is_found(tmp_path):
    """When it is verified, and when it is unpacked; but for those few that change nothing of what is in the pack."""
    path, entry = pack_of(tmp_path, content("/a/b", b"hello, hello, hello"))
    with open(path, "rb") as file:
        whole = file.read()
    out = tmp_path / "out"
    passed = 0
    for at in range(len(whole)):
        spoiled = bytearray(whole)
        spoiled[at] ^= 1 << at % 8
        with open(path, "wb") as file:
            file.write(spoiled)
        out.mkdir(exist_ok=True)
        if is_whole(path, entry):
            passed += 1
            unpack(path, entry, str(out))
            assert (out / "a" / "b").read_bytes() == b"hello, hello, hello"
            assert [line.decode() for line, _ in read_own_lines(path)] == [entry.to_json()]
        else:
            with pytest.raises(LogNotReadable, match="damaged"):
                unpack(path, entry, str(out))
    assert passed < len(whole) // 20


@pytest.mark.parametrize("length", [0, 1, 20, 100])
def test_a_cut_pack_is_damaged(tmp_path, length):
    """Wherever it ends."""
    path, entry = pack_of(tmp_path, content("/a/b", b"hello"))
    os.truncate(path, length)
    assert not is_whole(path, entry)
    (tmp_path / "out").mkdir()
    with pytest.raises(LogNotReadable, match="damaged"):
        unpack(path, entry, str(tmp_path / "out"))


def shared_by(folder, *logs):
    """(path, entries) of a file that the packs of small logs share."""
    written, entries = write_shared(str(folder), [(entry_for(one), [one]) for one in logs])
    path = str(folder / entries[0].name)
    files.replace_files([(written, path)])
    return path, entries


SMALL = [content(f"/a/{name}", name.encode() * 50) for name in ("b", "c", "ünïcode ☃")]


def test_what_small_logs_share_comes_out_one_by_one(tmp_path):
    """Each is unpacked without the others."""
    path, entries = shared_by(tmp_path, *SMALL)
    for entry, one in zip(entries, SMALL, strict=True):
        assert is_whole(path, entry)
        out = tmp_path / entry.path.replace("/", "-")
        out.mkdir()
        unpack(path, entry, str(out))
        [(_, _, [name])] = [found for found in os.walk(out) if found[2]]
        assert (out / "a" / name).read_bytes() == one.given


def test_a_shared_file_can_be_opened_without_us(tmp_path):
    """By `zstd` and `tar`, as one."""
    path, _ = shared_by(tmp_path, *SMALL[:2])
    with open(path, "rb") as file:
        tar = zstd_module("the test").decompress(file.read())
    listed = subprocess.run(["tar", "-tf", "-"], input=tar, capture_output=True, check=True).stdout
    assert listed == b"entry.json\na/b\nentry.json\na/c\n"


def test_a_shared_file_holds_the_lines_of_all(tmp_path):
    """Each with the size of its pack, which only the manifest has."""
    path, entries = shared_by(tmp_path, *SMALL)
    found = list(read_own_lines(path))
    assert [(json.loads(line)["version"], size) for line, size in found] == [(e.version, e.packed) for e in entries]


def test_damage_in_a_shared_file_costs_one_log(tmp_path):
    """Wherever it is, the others are whole, and their lines are found."""
    path, entries = shared_by(tmp_path, *SMALL)
    with open(path, "rb") as file:
        whole = file.read()
    for at in range(0, len(whole), 3):
        spoiled = bytearray(whole)
        spoiled[at] ^= 1 << at % 8
        with open(path, "wb") as file:
            file.write(spoiled)
        others = [entry for entry in entries if not entry.offset <= at < entry.offset + entry.packed]
        assert len(others) == 2
        assert all(is_whole(path, entry) for entry in others)
        lines = {json.loads(line)["path"] for line, _ in read_own_lines(path) if line}
        assert lines >= {entry.path for entry in others}


@pytest.mark.usefixtures("spoiling_disk")
def test_what_small_logs_share_is_read_back(tmp_path):
    """As any pack is."""
    with pytest.raises(LogNotReadable, match="not what was read"):
        shared_by(tmp_path, *SMALL)
    assert [name for _, _, names in os.walk(tmp_path) for name in names] == []


def forged(path, *members):
    """Write a pack of arbitrary members."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    path.write_bytes(zstd_module("the test").compress(out.getvalue()))
    return str(path)


def member(name, data=b"", **fields):
    """One member and its bytes."""
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in fields.items():
        setattr(info, key, value)
    return info, data


@pytest.mark.parametrize(
    "members",
    [
        [member("../../evil", b"x")],
        [member("/evil", b"x")],
        [member("a/b", type=tarfile.SYMTYPE, linkname="/etc")],
        [member("a", type=tarfile.SYMTYPE, linkname=".."), member("a/b", b"hello")],
        [member("a/b", b"hello and more")],
        [member("unasked", b"x"), member("a/b", type=tarfile.FIFOTYPE)],
    ],
)
def test_only_what_is_named_is_unpacked(tmp_path, members):
    """No link, no device, no other file, nothing outside, whatever a forged pack holds."""
    path = forged(tmp_path / "forged.tar.zst", *members)
    entry = entry_for(content("/a/b", b"hello"))
    out = tmp_path / "deep" / "out"
    out.mkdir(parents=True)
    if members[0][0].issym() and members[-1][1]:
        unpack(path, entry, str(out))  # the link was not asked for, the file is whole
    else:
        with pytest.raises(LogNotReadable, match="damaged"):
            unpack(path, entry, str(out))
    found = [os.path.join(place, name) for place, folders, names in os.walk(tmp_path) for name in (*folders, *names)]
    assert {os.path.relpath(one, tmp_path) for one in found} <= {
        "forged.tar.zst", "deep", "deep/out", "deep/out/a", "deep/out/a/b",
    }  # fmt: skip
    assert not [one for one in found if os.path.islink(one)]


def test_an_entry_that_climbs_is_not_followed(tmp_path):
    """A forged manifest leads nowhere, too."""
    evil = content("/a/../../evil", b"hello")
    path = forged(tmp_path / "forged.tar.zst", member("a/../../evil", b"hello"))
    out = tmp_path / "deep" / "out"
    out.mkdir(parents=True)
    with pytest.raises(LogNotReadable, match="damaged"):
        unpack(path, entry_for(evil), str(out))
    assert not (tmp_path / "evil").exists()


def test_the_beginning_is_hashed_on_the_way(tmp_path):
    """For any mark, also at its edges."""
    one = content("/a", b"0123456789")
    for mark in (0, 1, 9, 10):
        assert one.hashed(mark) == (
            hashlib.sha256(b"0123456789").hexdigest(),
            hashlib.sha256(b"0123456789"[:mark]).hexdigest(),
        )
    assert one.hashed(11)[1] == ""
