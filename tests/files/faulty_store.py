"""A store for tests: fsspec's in-memory file system with a version per object, a log of requests, and faults."""

from typing import ClassVar

from fsspec import register_implementation
from fsspec.implementations.memory import MemoryFileSystem


class FaultyStore(MemoryFileSystem):
    """`faulty://`: what `faults` names fails so many times, and every request is noted in `requests`."""

    protocol = "faulty"
    store: ClassVar[dict] = {}
    pseudo_dirs: ClassVar[list] = [""]
    requests: ClassVar[list] = []
    faults: ClassVar[dict] = {}
    versions: ClassVar[dict] = {}

    @classmethod
    def _strip_protocol(cls, path):
        """The path of a URL, without a user."""
        path = str(path).removeprefix("faulty://").rpartition("@")[2].strip("/")
        return f"/{path}" if path else ""

    @classmethod
    def reset(cls):
        """Empty the store."""
        cls.store.clear()
        cls.pseudo_dirs[:] = [""]
        cls.requests.clear()
        cls.faults.clear()
        cls.versions.clear()

    @classmethod
    def put(cls, path, data):
        """Write an object, which gets a new version."""
        cls().pipe(path, data)
        cls.versions[path] = cls.versions.get(path, 0) + 1

    def find(self, path, **options):
        """List."""
        self.requests.append(("find", path))
        self._fail("find")
        return {name: self._with_version(info) for name, info in super().find(path, **options).items()}

    def info(self, path, **options):
        """Return the state of an object."""
        self.requests.append(("info", self._strip_protocol(path)))
        self._fail("info")
        return self._with_version(super().info(path, **options))

    def ls(self, path, **options):
        """List a folder."""
        found = super().ls(path, **options)
        return [self._with_version(info) for info in found] if options.get("detail", True) else found

    def cat_file(self, path, start=None, end=None, **options):
        """Return bytes, as far as the faults let it."""
        self.requests.append(("get", path, start, end))
        self._fail("get")
        fault = self.faults.pop(("after", path), None)
        if fault is not None:
            fault()
        data = super().cat_file(path, start=start, end=end, **options)
        return data[: len(data) // 2] if self._left("cut") else data

    def _with_version(self, info):
        shown = {name: value for name, value in info.items() if name != "created"}
        version = self.versions.get(info["name"])
        return shown if version is None else {**shown, "ETag": f'"{version}"'}

    def _left(self, name):
        left = self.faults.get(name, 0)
        self.faults[name] = left - 1
        return left > 0

    def _fail(self, name):
        error = self.faults.get((name, "error"))
        if error is not None and self._left(name):
            raise error


register_implementation("faulty", FaultyStore, clobber=True)
