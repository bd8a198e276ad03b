"""A pack: one entry's files as `.tar.zst`, which `zstd` and `tar` can open without sessionlog.

The first member is the entry's line of the manifest, the others are the files under their whole paths. A pack is
written under a temporary name, read back and every hash compared; then it is synced and renamed. Unpacking extracts
only the files that the entry names, and never outside the folder.

A file of its own for each of very many small logs would cost a sync and a block of the disk each. So small logs share a
file: their packs one after the other, each a zstd frame of its own, so that damage of one is none of the others.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, BinaryIO

from sessionlog import files
from sessionlog.archive.entry import Entry, KeptFile, member_of
from sessionlog.errors import LogNotReadable
from sessionlog.reader.unpack import zstd_module, zstd_reader

_OWN = "entry.json"
_LEVEL = 9  # of 60 MB of transcripts 7.0 MB in 1.4 s, with level 6 7.4 MB in 1.2 s
_BLOCK = 512
_SMALL = 1 << 20
_FRAME = b"\x28\xb5\x2f\xfd"  # begins a frame of zstd
SHARED = "small-"
"""Begins the name of a file that many entries share."""
_MOST_SHARED = 16 << 20  # bytes of such a file


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What to keep of one file.

    Attributes:
        path: The original.
        mtime_ns: Its time of modification.
        given: The path of the file to read, or the bytes themselves.
        length: How many bytes to keep.
    """

    path: str
    mtime_ns: int
    given: str | bytes
    length: int

    def pieces(self) -> Iterator[bytes]:
        """Yield exactly `length` bytes; what was appended since is left for the next run.

        Raises:
            LogNotReadable: The file cannot be read, or has shrunk.
        """
        if isinstance(self.given, bytes):
            yield self.given
            return
        left = self.length
        with files.open_log(self.given) as file:
            while left:
                piece = file.read(min(left, files.BUFFER))
                if not piece:
                    raise LogNotReadable(f"{self.path}: it has shrunk while it was read")
                left -= len(piece)
                yield piece

    def hashed(self, mark: int = 0) -> tuple[str, str]:
        """Return the hash of all bytes, and that of the first `mark` bytes ("" if there are fewer)."""
        whole, done, begun = hashlib.sha256(), 0, hashlib.sha256(b"").hexdigest() if not mark else ""
        for piece in self.pieces():
            if not begun and done + len(piece) >= mark:
                first = whole.copy()
                first.update(piece[: mark - done])
                begun = first.hexdigest()
            whole.update(piece)
            done += len(piece)
        return whole.hexdigest(), begun


def write_pack(path: str, entry: Entry, contents: Sequence[Content]) -> str:
    """Write a pack beside its path; return the temporary path, which `files.replace_files` syncs and renames.

    Raises:
        LogNotReadable: A file has shrunk meanwhile, or the pack that was written does not hold what was read.
        OSError: The disk is full, or the file cannot be written.
    """
    files.make_directories(os.path.dirname(path))
    size = sum(content.length for content in contents)
    temporary = files.write_temporary(path, _packed(_tar(entry, contents), size), is_synced=False)
    if not is_whole(temporary, entry):
        os.unlink(temporary)
        raise LogNotReadable(f"{entry.path}: what was written is not what was read")
    return temporary


def write_shared(folder: str, logs: Sequence[tuple[Entry, Sequence[Content]]]) -> tuple[str, list[Entry]]:
    """Write the packs of small logs of one source into a file; return its temporary path, and the entries in it.

    Raises:
        LogNotReadable: What was written is not what was read.
        OSError: As `write_pack`.
    """
    name = f"{SHARED}{os.urandom(16).hex()}"  # never that of a file to which the manifest refers already
    packer = _packer(zstd_module("keeping logs"))
    entries, tars, packs, offset = list[Entry](), list[bytes](), list[bytes](), 0
    for log_entry, contents in logs:
        entry = replace(log_entry, shared=name, offset=offset)
        tar = b"".join(_tar(entry, contents, is_last=False))
        packer.set_pledged_input_size(len(tar))  # as in `_packed`
        pack = packer.compress(tar, packer.FLUSH_FRAME)
        entries.append(replace(entry, packed=len(pack)))
        tars.append(tar)
        packs.append(pack)
        offset += len(pack)
    path = os.path.join(folder, entries[0].name)
    files.make_directories(os.path.dirname(path))
    temporary = files.write_temporary(path, packs, is_synced=False)
    if not _holds(temporary, entries, tars):
        os.unlink(temporary)
        raise LogNotReadable(f"{path}: what was written is not what was read")
    return temporary, entries


def _holds(path: str, entries: Sequence[Entry], tars: Sequence[bytes]) -> bool:
    """Whether a file holds the packs of entries, and they hold these bytes."""
    zstd = zstd_module("the archive")
    try:
        with files.open_log(path) as file:
            return all(
                zstd.decompress(file.read(entry.packed)) == tar for entry, tar in zip(entries, tars, strict=True)
            )
    except (LogNotReadable, zstd.ZstdError):
        return False


def _tar(entry: Entry, contents: Sequence[Content], *, is_last: bool = True) -> Iterator[bytes]:
    own = entry.to_json().encode()
    yield from _member(_OWN, len(own), 0, [own])
    for content in contents:
        yield from _member(member_of(content.path), content.length, content.mtime_ns, content.pieces())
    if is_last:  # `tar` reads no further than this
        yield b"\0" * (2 * _BLOCK)


def _member(name: str, size: int, mtime_ns: int, pieces: Iterable[bytes]) -> Iterator[bytes]:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = size, 0o600, max(0, mtime_ns // 1_000_000_000)
    yield info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
    yield from pieces
    yield b"\0" * (-size % _BLOCK)


def _packed(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    packer = _packer(zstd_module("keeping logs"))
    if size < _SMALL:  # zstd needs to know that the data is small, or it makes tables for megabytes
        whole = b"".join(pieces)
        packer.set_pledged_input_size(len(whole))
        yield packer.compress(whole, packer.FLUSH_FRAME)
        return
    for piece in pieces:
        yield packer.compress(piece)
    yield packer.flush()


def _packer(zstd: Any) -> Any:
    parameter = zstd.CompressionParameter
    return zstd.ZstdCompressor(options={parameter.compression_level: _LEVEL, parameter.checksum_flag: 1})


def _open(path: str, entry: Entry | None) -> BinaryIO:
    """Open a pack, of an entry if others share its file."""
    file = files.open_log(path)
    if entry is None or not entry.shared:
        return file
    with file:
        file.seek(max(0, entry.offset))
        return io.BytesIO(file.read(max(0, min(entry.packed, _MOST_SHARED))))


@contextmanager
def _members(path: str, opened: Callable[[], BinaryIO]) -> Iterator[tarfile.TarFile]:
    """Open a pack; any damage raises `LogNotReadable`."""
    zstd = zstd_module("the archive")
    try:
        with (
            opened() as file,
            zstd_reader(zstd, file) as unpacked,
            tarfile.open(fileobj=unpacked, mode="r|") as tar,  # its name only: no file is opened
        ):
            tar.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
            yield tar
            while unpacked.read(files.BUFFER):  # at the end is the checksum of all
                pass
    except (EOFError, ValueError, tarfile.TarError, zstd.ZstdError) as error:
        raise LogNotReadable(f"{path}: the archive's entry is damaged ({error})") from error


def is_whole(path: str, entry: Entry) -> bool:
    """Whether a pack can be read, and holds exactly the files and bytes that the entry names."""
    wanted = {member_of(file.path): file.sha256 for file in entry.kept}
    found: dict[str, str] = {}
    try:
        with _members(path, partial(_open, path, entry)) as tar:
            for member in tar:
                if member.name != _OWN:
                    found[member.name] = _hash_of(tar.extractfile(member))
    except LogNotReadable:
        return False
    return found == wanted


def _hash_of(file: Any) -> str:
    whole = hashlib.sha256()
    while file is not None and (piece := file.read(files.BUFFER)):
        whole.update(piece)
    return whole.hexdigest()


def unpack(path: str, entry: Entry, folder: str) -> None:
    """Unpack an entry's files into a private folder, under their whole paths, with their times.

    Raises:
        LogNotReadable: The pack is missing or damaged, or a file in it is not what the entry describes.
    """
    wanted = {member_of(file.path): file for file in entry.kept}
    with _members(path, partial(_open, path, entry)) as tar:
        for member in tar:
            file = wanted.get(member.name)
            if file is not None and _is_harmless(member, file):
                del wanted[member.name]
                tar.extract(member, folder, set_attrs=False)
                copy = os.path.join(folder, *member.name.split("/"))
                os.utime(copy, ns=(file.mtime_ns, file.mtime_ns))
                if _hash_of_file(copy) != file.sha256:
                    raise LogNotReadable(f"{path}: the archive's entry is damaged ({file.path})")
    if wanted:
        raise LogNotReadable(f"{path}: the archive's entry is damaged ({next(iter(wanted.values())).path} is missing)")


def _is_harmless(member: tarfile.TarInfo, file: KeptFile) -> bool:
    return member.isreg() and member.size == file.bytes and ".." not in member.name.split("/")


def _hash_of_file(path: str) -> str:
    with files.open_log(path) as file:
        return _hash_of(file)


def read_own_lines(path: str) -> Iterator[tuple[bytes, int]]:
    """Yield (the line of its entry, size) of each pack in a file; the line is empty where there is none."""
    if not os.path.basename(path).startswith(SHARED):
        status = files.stat_path(path)
        yield _own_line(path, partial(files.open_log, path)), 0 if status is None else status.st_size
        return
    zstd = zstd_module("the archive")
    whole, at = files.read_small(path, _MOST_SHARED) or b"", 0
    while (at := whole.find(_FRAME, at)) >= 0:
        pack = whole[at:]
        with suppress(zstd.ZstdError):
            pack = pack[: zstd.get_frame_size(pack)]
        line = _own_line(path, partial(io.BytesIO, pack))
        at += len(pack) if line else 1  # damaged: the next pack begins anywhere
        if line:
            yield line, len(pack)


def _own_line(path: str, opened: Callable[[], BinaryIO]) -> bytes:
    """The line of its entry that a pack holds; empty where it has none."""
    try:
        with _members(path, opened) as tar:
            first = next(iter(tar), None)
            file = None if first is None or first.name != _OWN else tar.extractfile(first)
            return b"" if file is None else file.read()
    except LogNotReadable:
        return b""
