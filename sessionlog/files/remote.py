"""Remote places: folders and logs in buckets and on servers, by their URL, through fsspec.

Only what `opened` has opened exists: a URL that stands in a log is never followed. A place is listed once, when it is
opened, so that a command sees one state of it; other objects of the same bucket or server (a sidecar above the place)
are asked for one by one. Everything outside this module knows a place by its URL without passwords and keys.
"""

from __future__ import annotations

import os
import stat as mode
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar
from weakref import ref

from sessionlog.errors import LogNotReadable, MissingExtra, SessionLogError
from sessionlog.files.remote_errors import Retries, clean, describe
from sessionlog.files.remote_reader import Content, Entry, RemoteFile
from sessionlog.files.urls import (
    TIMED,
    VERSIONED,
    address_of,
    is_url,
    secrets_of,
    server_of,
    split_url,
    without_password,
)
from sessionlog.locks import RLock

THREADS = 8
"""Requests that wait for a store at once."""

_VERSIONS = ("ETag", "etag", "version_id", "generation", "md5Hash", "content_md5", "checksum", "blob_id", "created")
_TIMES = ("LastModified", "last_modified", "updated", "mtime", "modified", "created")
_PACKAGES = {
    "s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs", "abfss": "adlfs",
    "adl": "adlfs", "hf": "huggingface_hub", "ssh": "paramiko", "sftp": "paramiko", "http": "aiohttp",
    "https": "aiohttp", "smb": "smbprotocol", "oss": "ossfs", "oci": "ocifs", "webhdfs": "requests", "hdfs": "pyarrow",
}  # fmt: skip
_OF_BUCKETS = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss"})
_KEPT = 64 << 20
_T = TypeVar("_T")
_R = TypeVar("_R")


class Folder(NamedTuple):
    """An entry of a remote folder; it has the attributes of `os.DirEntry` that are used here."""

    name: str
    path: str
    is_folder: bool

    def is_dir(self) -> bool:
        """Whether it is a folder itself."""
        return self.is_folder


_open: list[Place] = []


@contextmanager
def opened(paths: Iterable[str]) -> Iterator[list[str]]:
    """Open the remote places among some paths until the context ends; yield the paths, URLs without passwords.

    A place that is open already is not listed again.

    Raises:
        MissingExtra: fsspec, or the package of a protocol, is not installed.
        LogNotReadable: A place cannot be listed.
    """
    begun: list[Place] = []
    try:
        names = []
        for path in paths:
            if not is_url(path):
                names.append(path)
                continue
            name = without_password(path)
            if not any(place.covers(name) for place in _open):
                place = Place(path)
                begun.append(place)
                _open.append(place)
            names.append(name)
        yield names
    finally:
        for place in begun:
            with suppress(ValueError):  # interrupted before it was there
                _open.remove(place)
            place.close()


def in_threads(call: Callable[[_T], _R], items: Iterable[_T], threads: int = THREADS) -> Iterator[_R]:
    """Yield what a function returns for each item, in order, while threads wait for the store's next answers.

    At most a few results wait. When the caller stops early, what has not begun is not done.
    """
    from collections import deque
    from concurrent.futures import Future, ThreadPoolExecutor

    executor = ThreadPoolExecutor(threads)
    waiting: deque[Future[_R]] = deque()
    try:
        for item in items:
            waiting.append(executor.submit(call, item))
            if len(waiting) > 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BaseException:
        for place in _open:
            place.close()
        raise
    finally:
        executor.shutdown(cancel_futures=True)


def place_of(url: str) -> Place | None:
    """Return the open place that a URL is in, or one of the same bucket or server; None if there is none."""
    url = url.rstrip("/")
    return next(
        (place for place in _open if place.covers(url)),
        next((p for p in _open if server_of(p.url) == server_of(url)), None),
    )


def connection_of(url: str) -> tuple[Any, str, dict[str, int]]:
    """Return fsspec's file system, the path in it, and the size of each object by its name below, of an open place.

    Raises:
        LogNotReadable: No place is open that the URL is in.
    """
    place = place_of(url)
    if place is None:
        raise LogNotReadable(f"{url}: not open")
    return place.connection(url)


def stat(url: str) -> os.stat_result | None:
    """Return the state of a remote object or folder as the system returns a file's; None where there is none."""
    place = place_of(url)
    found = None if place is None else place.look(url.rstrip("/"))
    if found is None:
        return None
    is_folder = isinstance(found, str)
    size, version, mtime_ns, is_versioned = (0, 0, 0, True) if isinstance(found, str) else found
    kind = mode.S_IFDIR | 0o500 if is_folder else mode.S_IFREG | 0o400
    device = VERSIONED if is_versioned else TIMED
    seconds = mtime_ns // 10**9
    shown = (kind, _number(url.rstrip("/")), device, 1, os.getuid() if hasattr(os, "getuid") else 0, 0, size)
    times = {"st_atime_ns": mtime_ns, "st_mtime_ns": mtime_ns, "st_ctime_ns": version}
    return os.stat_result((*shown, seconds, seconds, seconds), times)


def entries(folder: str) -> list[Folder]:
    """Return the entries of a remote folder, sorted by name; none where it cannot be listed."""
    place = place_of(folder)
    return [] if place is None else place.entries(folder.rstrip("/"))


def open_object(url: str) -> RemoteFile:
    """Return a remote object as an unbuffered file.

    Raises:
        LogNotReadable: There is none, or no place is open that it is in.
    """
    place = place_of(url)
    found = None if place is None else place.look(url)
    if place is None or found is None:
        raise LogNotReadable(f"{url}: no such object")
    if isinstance(found, str):
        raise LogNotReadable(f"{url}: a folder")
    return RemoteFile(place.content(url, found))


class Place:
    """An open remote folder or object, and what is known of the bucket or server around it.

    Attributes:
        url: Its URL without password.
    """

    def __init__(self, url: str) -> None:
        """Connect and list it.

        Raises:
            MissingExtra: A package is not installed.
            LogNotReadable: It cannot be listed.
        """
        self.url = without_password(url)
        self._retries = Retries()
        self._system, self._root = connect(url)
        self._secrets = secrets_of(url)
        self._user = split_url(url)[1]
        self._turn = nullcontext() if getattr(self._system, "async_impl", False) else RLock()
        self._files: dict[str, Entry | None] = {}
        self._folders: dict[str, dict[str, bool]] = {}
        self._absent: set[str] = set()
        self._failed: dict[str, str] = {}
        self._contents: dict[str, ref[Content]] = {}
        self._heads: dict[str, bytes] = {}
        self._room = _KEPT
        self._lock = RLock()
        self._list()

    def covers(self, url: str) -> bool:
        """Whether a URL is that of the place, or of something in it."""
        return url == self.url or url.startswith(f"{self.url}/")

    def connection(self, url: str) -> tuple[Any, str, dict[str, int]]:
        """Return what `connection_of` does."""
        begin = f"{url}/"
        sizes = {
            name[len(begin) :]: entry.size for name, entry in self._files.items() if entry and name.startswith(begin)
        }
        system = self._system
        if not isinstance(self._turn, nullcontext):
            from sessionlog.files.serial_system import SerialFileSystem

            system = SerialFileSystem(system, self._turn)
        return system, self._path(url).rstrip("/"), sizes

    def look(self, url: str) -> Entry | str | None:
        """Return the state of an object, "folder" for a folder, None where there is nothing."""
        if url in self._files:
            return self._files[url] or self._ask(url)
        if url in self._folders:
            return "folder"
        if url in self._absent or (self.covers(url) and self._is_folder):
            return None
        return self._ask(url)

    def entries(self, folder: str) -> list[Folder]:
        """Return the entries of a folder, sorted by name."""
        known = self._folders.get(folder)
        if known is None:
            if self.covers(folder) and self._is_folder:
                return []
            known = self._list_one(folder)
        return [Folder(name, f"{folder}/{name}", known[name]) for name in sorted(known, key=os.fsencode)]

    def content(self, url: str, entry: Entry) -> Content:
        """Return what was read of an object: shared by all that have it open."""
        with self._lock:
            known = self._contents.get(url)
            content = None if known is None else known()
            if content is None:
                content = Content(self, url, entry)
                self._contents[url] = ref(content, lambda _: self._contents.pop(url, None))
        return content

    def fetch(self, url: str, start: int, end: int, size: int) -> bytes:
        """Return the bytes of an object from `start` to `end`; one request, and more after passing errors.

        Raises:
            LogNotReadable: It cannot be read, has another length than when it was listed, or is gone.
        """
        path = self._path(url)

        def read() -> bytes:
            whole = start == 0 and end == size
            data = self._system.cat_file(path) if whole else self._system.cat_file(path, start=start, end=end)
            if len(data) != end - start:
                self.verify(url)
                raise EOFError(f"{len(data)} bytes came where {end - start} were asked for")
            return bytes(data)

        if url in self._failed:
            raise LogNotReadable(self._failed[url])
        try:
            found: bytes = self._request(url, read)
        except LogNotReadable as error:
            self._failed[url] = str(error)  # whoever opens it next in this command need not wait as long again
            raise
        return found

    def verify(self, url: str) -> None:
        """Check that an object is still the one that was listed.

        Raises:
            LogNotReadable: It has changed.
        """
        known = self._files.get(url)
        self._system.invalidate_cache(self._path(url).rpartition("/")[0])
        now = _entry(self._system.info(self._path(url)))
        if known is not None and (now is None or (now.size, now.version) != (known.size, known.version)):
            raise LogNotReadable(f"{url}: it changed while it was read; it is read again next time")

    def checked(self, url: str) -> None:
        """As `verify`, again after passing errors."""
        self._request(url, lambda: self.verify(url))

    def head(self, url: str) -> bytes | None:
        """Return the first bytes of an object if they are kept."""
        return self._heads.get(url)

    def keep_head(self, url: str, data: bytes) -> None:
        """Keep the first bytes of an object, which recognising and scanning it need, while there is room."""
        with self._lock:
            if url not in self._heads and len(data) <= self._room:
                self._room -= len(data)
                self._heads[url] = data

    def close(self) -> None:
        """End all waits for another try; files that are still open cannot be read further."""
        self._retries.stop()

    def _list(self) -> None:
        self._system.invalidate_cache()
        found: dict[str, Any] = self._request(self.url, self._find)
        root = self._root.rstrip("/")
        self._is_folder = set(found) != {self._root} or self._is_slashed(found)
        if not found:
            self._is_folder = False
            return
        for name, info in found.items():
            inside = name[len(root) :]
            if info.get("type") == "directory" or name.endswith("/"):
                continue  # an empty object that some tools make to show a folder
            if not self._is_folder:
                self._files[self.url] = _entry(info)
            elif inside.startswith("/"):
                self._add(f"{self.url}{inside}", info)
        if self._is_folder:
            self._folders.setdefault(self.url, {})

    def _find(self) -> dict[str, Any]:
        """Return all objects below the root; a folder that cannot be listed raises its error.

        The search that fsspec has for servers with folders leaves such a folder out, so that its logs seem deleted.
        """
        from fsspec.asyn import AsyncFileSystem
        from fsspec.spec import AbstractFileSystem

        system, kind = self._system, type(self._system)
        searches = getattr(kind, "_find", None), kind.find
        is_own = AsyncFileSystem._find in searches or AbstractFileSystem.find in searches  # noqa: SLF001 - to know it
        if not is_own or not system.isdir(self._root):
            return dict(system.find(self._root, detail=True))
        found: dict[str, Any] = {}
        waiting = [self._root]
        while waiting:
            folder = waiting.pop()
            with suppress(FileNotFoundError):  # it was deleted meanwhile
                for info in system.ls(folder, detail=True):
                    name = info["name"]
                    if info.get("type") != "directory":
                        found[name] = info
                    elif name.rstrip("/") != folder.rstrip("/"):
                        waiting.append(name)
        return found

    def _is_slashed(self, found: dict[str, Any]) -> bool:
        return any(info.get("type") == "directory" for info in found.values())

    def _add(self, url: str, info: Any) -> None:
        self._files[url] = _entry(info)
        is_folder = False
        while url != self.url:
            folder, _, name = url.rpartition("/")
            names = self._folders.setdefault(folder, {})
            is_known = name in names
            names[name] = is_folder or names.get(name, False)
            if is_known and is_folder:
                return
            url, is_folder = folder, True

    def _list_one(self, folder: str) -> dict[str, bool]:
        """List a folder outside the place, without the folders in it."""
        path = self._path(folder)
        try:
            found = self._request(folder, lambda: self._system.ls(path, detail=True))
        except LogNotReadable:
            found = []
        names = self._folders.setdefault(folder, {}) if found else {}
        for info in found:
            name = str(info["name"]).rstrip("/").rpartition("/")[2]
            if name and str(info["name"]).rstrip("/") != path.rstrip("/"):
                names[name] = info.get("type") == "directory"
                if not names[name]:
                    self._files.setdefault(f"{folder}/{name}", _entry(info))
        return names

    def _ask(self, url: str) -> Entry | str | None:
        """Ask for one object. One that may not be seen does not exist."""
        try:
            info = self._request(url, lambda: self._system.info(self._path(url)), absent=True)
        except FileNotFoundError:
            self._absent.add(url)
            return None
        if info.get("type") == "directory":
            return "folder"
        entry = _entry(info, is_alone=True)
        self._files[url] = entry
        return entry

    def _path(self, url: str) -> str:
        """The path of a URL in the file system."""
        if url == self.url:
            return self._root
        if self.covers(url):
            return self._root.rstrip("/") + url[len(self.url) :]
        scheme, _, rest = url.partition("://")
        full = f"{scheme}://{self._user}@{rest}" if self._user and not rest.startswith(f"{self._user}@") else url
        path: str = self._system._strip_protocol(full)  # noqa: SLF001 - fsspec's own way from a URL to a path
        return path

    def _request(self, url: str, call: Callable[[], Any], *, absent: bool = False) -> Any:
        """Call a function until it succeeds, a few times at most.

        Raises:
            LogNotReadable: It does not, with the reason.
            FileNotFoundError: There is no such object, or it may not be seen, where `absent` asks for that.
        """

        def in_turn() -> Any:
            with self._turn:
                return call()

        try:
            return self._retries.run(in_turn)
        except SessionLogError:
            raise
        except Exception as error:
            if absent and isinstance(error, FileNotFoundError | PermissionError | NotADirectoryError):
                raise FileNotFoundError(url) from error
            is_gone = isinstance(error, FileNotFoundError) and url in self._files
            reason = "it vanished after it was listed" if is_gone else describe(error)
            raise LogNotReadable(f"{url}: {clean(reason, self._secrets)}") from error


def connect(url: str, purpose: str = "reading") -> tuple[Any, str]:
    """Return fsspec's file system of a URL, and the path in it.

    Raises:
        MissingExtra: fsspec, or the package of the protocol, is not installed; the sentence begins with `purpose`.
        LogNotReadable: The protocol is not known, or a client cannot be made.
    """
    shown, scheme = without_password(url), url.partition("://")[0]
    package = _PACKAGES.get(scheme, "")
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        needed = f"pip install 'sessionlog[remote]' {package}".rstrip()
        raise MissingExtra(f"{purpose} {shown} needs: {needed}") from error
    if scheme in _OF_BUCKETS and not split_url(url)[2].strip("/"):
        raise LogNotReadable(f"{shown}: it names no bucket; give one, such as {scheme}://bucket/logs")
    try:
        address, options = address_of(url)
        system, root = url_to_fs(address, **options)
    except ImportError as error:
        needed = f"pip install {package}" if package else str(error)
        raise MissingExtra(f"{purpose} {shown} needs: {needed}") from error
    except Exception as error:
        reason = clean(describe(error), secrets_of(url))
        if reason.lower().startswith("protocol not known"):
            reason = f"there is no protocol {scheme}; URLs begin with s3://, gs://, az://, hf://, ssh:// or https://"
        raise LogNotReadable(f"{shown}: {reason}") from error
    return system, str(root)


def _entry(info: Any, *, is_alone: bool = False) -> Entry | None:
    """The state of an object from fsspec's description; None where that has no size and has to be asked for."""
    size = info.get("size")
    if size is None:
        return Entry(0, 0, 0, is_versioned=False) if is_alone else None
    mtime_ns = next(filter(None, (_nanoseconds(info.get(name)) for name in _TIMES)), 0)
    versions = (info[name] for name in _VERSIONS if info.get(name))
    version = next((str(_nanoseconds(one) or one).strip('"') for one in versions), "")
    return Entry(int(size), _number(version or str(mtime_ns)), mtime_ns, bool(version))


def _nanoseconds(value: Any) -> int:
    if isinstance(value, str):
        with suppress(ValueError):
            value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        value = value.timestamp()
    return round(value * 1e6) * 1000 if isinstance(value, int | float) and 0 < value < 1 << 40 else 0


def _number(text: str) -> int:
    """A number of 62 bits that stands for a text: SQLite's integers have a sign."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") >> 2
