"""Compressed logs: read as if they were plain, up to where they end or turn out to be no logs."""

import contextlib
import gzip
import io
import os
import random
import sys
from pathlib import Path

import pytest

from sessionlog.errors import MissingExtra, Problem
from sessionlog.events.encode import encode_object
from sessionlog.events.envelope import Event
from sessionlog.reader import unpack
from sessionlog.reader.stream import read_events
from sessionlog.reader.unpack import unpack_zstd, zstd_module

try:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
except ImportError:
    zstd = None

SAMPLES = sorted((Path(__file__).parents[2] / "testdata" / "reader").glob("*.jsonl"))
PACKERS = {".gz": gzip.compress, ".zst": zstd.compress if zstd else None}
SUFFIXES = [".gz", pytest.param(".zst", marks=pytest.mark.skipif(zstd is None, reason="no zstd decoder"))]


def lines(count):
    noise = random.Random(5)  # compresses badly, so that the middle of the packed bytes is the middle of the log
    return b"".join(
        encode_object(
            Event(
                session_id="s", seq=seq, type="x", ts="2026-11-21T10:00:00Z", data=noise.randbytes(200).hex()
            ).to_dict()
        )
        for seq in range(count)
    )


def read(path, content):
    path.write_bytes(content)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    return list(read_events(str(path)))


def without_path(items):
    return [(item.line, item.offset, item.kind, item.length) if isinstance(item, Problem) else item for item in items]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_a_compressed_log_is_read_like_a_plain_one(sample, suffix, tmp_path):
    """Events, problems and places are those of the unpacked bytes."""
    content = sample.read_bytes()
    plain = read(tmp_path / "log.jsonl", content)
    packed = read(tmp_path / f"log.jsonl{suffix}", PACKERS[suffix](content))
    assert without_path(packed) == without_path(plain)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_several_members_are_one_log(suffix, tmp_path):
    """A log that was compressed in portions is read to its end."""
    content = lines(3) + lines(3)
    packed = PACKERS[suffix](lines(3)) * 2
    assert read(tmp_path / f"log.jsonl{suffix}", packed) == read(tmp_path / "log.jsonl", content)


def test_a_log_larger_than_any_buffer(tmp_path):
    """Several megabytes come whole."""
    items = read(tmp_path / "log.jsonl.gz", gzip.compress(lines(8000), 1))
    assert [item.seq for item in items] == list(range(8000))


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("part", [0.2, 0.5, 0.9, 0.999])
def test_a_truncated_compressed_log(suffix, part, tmp_path):
    """What can be unpacked is read, and the end is named as damage."""
    content = lines(2000)
    packed = PACKERS[suffix](content)
    items = read(tmp_path / f"log.jsonl{suffix}", packed[: int(len(packed) * part)])
    whole = [item for item in items if isinstance(item, Event)]
    assert [event.seq for event in whole] == list(range(len(whole)))
    assert 2000 > len(whole) > 2000 * part * 0.5 - 300  # zstd unpacks blocks of 128 KiB
    assert (items[-1].kind, items[-1].severity) == ("bad_compression", "damage")
    assert items[-1].offset <= len(content)


def test_a_small_truncated_gzip_gives_its_events(tmp_path):
    """Also a file smaller than one buffer is read as far as it goes."""
    packed = gzip.compress(lines(20))
    items = read(tmp_path / "log.jsonl.gz", packed[:-9])
    assert sum(isinstance(item, Event) for item in items) >= 19


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("content", [b"not compressed at all", b"\x1f\x8b", b"\x28\xb5\x2f\xfd\x00"])
def test_what_is_not_compressed(suffix, content, tmp_path):
    """A file with the wrong content has one problem and no event."""
    [problem] = read(tmp_path / f"log.jsonl{suffix}", content)
    assert (problem.kind, problem.severity) == ("bad_compression", "damage")


def test_damage_in_the_middle(tmp_path):
    """A flipped byte ends the reading there; what came before is kept."""
    packed = bytearray(gzip.compress(lines(2000)))
    packed[len(packed) // 2] ^= 0xFF
    items = read(tmp_path / "log.jsonl.gz", bytes(packed))
    assert sum(isinstance(item, Event) for item in items) > 500
    assert items[-1].kind == "bad_compression"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_empty_compressed_log(suffix, tmp_path):
    """Nothing in it is nothing wrong with it."""
    assert read(tmp_path / f"log.jsonl{suffix}", PACKERS[suffix](b"")) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_p09_a_bomb_is_not_unpacked(suffix, tmp_path, monkeypatch):
    """A file that unpacks to far more than a log would is left, and named."""
    monkeypatch.setattr(unpack, "_RATIO_FROM", 3 << 20)
    items = read(tmp_path / f"log.jsonl{suffix}", PACKERS[suffix](lines(1) + (b"x" * 2000 + b"\n") * 4000))
    assert isinstance(items[0], Event)
    assert items[-1].kind == "bad_compression"
    assert "not a log" in items[-1].detail


@pytest.mark.parametrize(("slack", "is_read"), [(0, True), (-1, False)])
def test_the_limit_of_the_ratio(slack, is_read, tmp_path, monkeypatch):
    """Of a log that unpacks to more than a certain size, exactly so many times its packed size is read."""
    content = lines(1) * 500
    packed = gzip.compress(content)
    monkeypatch.setattr(unpack, "MAX_RATIO", len(content) / len(packed) + slack / len(packed))
    for size, is_bomb in ((len(content), False), (len(content) - 1, not is_read)):
        monkeypatch.setattr(unpack, "_RATIO_FROM", size)
        items = read(tmp_path / f"{size}.jsonl.gz", packed)
        assert (items[-1].__class__ is not Event) == is_bomb


def test_the_absolute_limit(tmp_path, monkeypatch):
    """However well a log compresses, there is an end."""
    content = lines(200)
    monkeypatch.setattr(unpack, "MAX_UNPACKED", len(content))
    assert sum(isinstance(item, Event) for item in read(tmp_path / "a.jsonl.gz", gzip.compress(content))) == 200
    monkeypatch.setattr(unpack, "MAX_UNPACKED", len(content) - 1)
    assert read(tmp_path / "b.jsonl.gz", gzip.compress(content))[-1].kind == "bad_compression"


def test_a_missing_decoder_says_what_to_install(tmp_path, monkeypatch):
    """Without zstd the sentence names the package, and the file is not left open."""
    monkeypatch.setitem(sys.modules, "backports.zstd", None)
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    (tmp_path / "log.jsonl.zst").write_bytes(b"x")
    with pytest.raises(MissingExtra, match="pip install backports"):
        list(read_events(str(tmp_path / "log.jsonl.zst")))


def test_both_files_are_closed(tmp_path):
    """Closing the reader closes what is below it, and closing twice is nothing."""
    (tmp_path / "log.jsonl.gz").write_bytes(gzip.compress(b"x"))
    file, unpacked = unpack.open_unpacked(str(tmp_path / "log.jsonl.gz"))
    file.close()
    unpacked.close()
    assert unpacked.closed
    with contextlib.suppress(ValueError), pytest.raises(io.UnsupportedOperation):
        file.read()


def test_a_frame_in_memory_is_bounded():
    """One that unpacks to more than it may, or is damaged, says so beside what could be read."""
    zstd = zstd_module("this test")
    data, failure = unpack_zstd(zstd.compress(b"x" * (3 << 20)), 1 << 20, "this test")
    assert (len(data), failure) == (1 << 20, f"unpacks to more than {1 << 20} bytes")
    assert unpack_zstd(zstd.compress(b"x"), 10, "this test") == (b"x", "")
    assert unpack_zstd(b"\x00\x11", 10, "this test")[1].startswith("the compressed data are damaged")


@pytest.mark.parametrize(("log", "is_read"), [(26, True), (27, False)])
def test_p09_a_window_beyond_64_mib_is_refused(log, is_read, tmp_path):
    """The decoder would hold all of it in memory: what to do instead is said, and the data are not called damaged."""
    parameter = zstd_module("this test").CompressionParameter
    options = {parameter.window_log: log, parameter.content_size_flag: 0}
    packer = zstd_module("this test").ZstdCompressor(options=options)
    packed = packer.compress(lines(3)) + packer.flush()
    items = read(tmp_path / "log.jsonl.zst", packed)
    data, failure = unpack_zstd(packed, 1 << 20, "this test")
    if is_read:
        assert [item.seq for item in items] == [0, 1, 2]
        assert (data, failure) == (lines(3), "")
    else:
        assert [item.kind for item in items] == ["bad_compression"]
        assert "window of more than 64 MiB: unpack it with `zstd -d --long=31`" in items[0].detail
        assert (data, failure) == (b"", items[0].detail)
