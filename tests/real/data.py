"""Homes that real clients left on disk, each with the truth of the API stub that served them.

`$SESSIONLOG_REAL` names the folder of homes. Nothing of it is copied into the project, and nothing here names the homes
that are there today: every folder is a home, called `client` or `client-version`. Where the variable is unset, each
parametrised check is one skipped test whose reason says how many homes were not compared.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

VARIABLE = "SESSIONLOG_REAL"
HOMES = 23
"""How many homes there were when the checks were written; a test compares it with the folder."""

CLASSES = ("input", "cache_read", "cache_write", "output")
OK = 200
_TRUTH = "truth.json"


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """Token counts in disjoint classes; `reasoning` is a part of the output."""

    input: int
    cache_read: int
    cache_write: int
    output: int
    reasoning: int = 0
    cache_write_1h: int = 0

    @property
    def classes(self) -> tuple[int, ...]:
        """The four classes that add up to the total."""
        return tuple(getattr(self, name) for name in CLASSES)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the stub answered to one request.

    Attributes:
        number: Its number within the run; the answer's text and ids contain it.
        run: The run that it belongs to; two runs in one home count separately.
        time: When the stub received it, seconds since 1970.
        model: The model asked for.
        api: The API spoken: anthropic, chat, responses or gemini.
        status: The HTTP status.
        tokens: The usage; None for a refused request.
        whole: The answer was sent to its end.
        delivered: The answer was sent to its end, and without a pause.
        side: A title, a routing question and the like, which few clients log.
        prompt: The end of the last user message.
        session: The session as the request itself named it; None where the client does not say.
        action: What the stub was told to answer: read, bash, task, text, slow …
    """

    number: int
    run: str
    time: float
    model: str
    api: str
    status: int
    tokens: Tokens | None
    whole: bool
    delivered: bool
    side: bool
    prompt: str
    session: str | None
    action: str

    @property
    def is_counted(self) -> bool:
        """Whether usage must count it."""
        return self.tokens is not None and self.delivered and not self.side

    @property
    def sentence(self) -> str:
        """The scripted prompt, `First: read notes. STEPS[read,bash,text]`; empty where the excerpt does not hold it."""
        before, found, after = self.prompt.rpartition("STEPS[")
        steps, closed, _ = after.partition("]")
        begin = max(before.rfind("\n"), before.rfind('"')) + 1
        return f"{before[begin:]}STEPS[{steps}]" if found and closed else ""

    @property
    def marks(self) -> tuple[str, ...]:
        """Texts that only the answer to this request contains: its words, or the id of its tool call."""
        return f"Answer {self.number}:", f"now ({self.number})", f"call_stub{self.number}x"


@dataclass(frozen=True, kw_only=True)
class Home:
    """One client's home.

    Attributes:
        name: `client` or `client-version`.
        folder: Where it is; only read.
        requests: All that the stub answered, in order.
        missing: How many answers the client itself does not log.
        folds_cache_write: The client counts cache writes as input.
    """

    name: str
    folder: Path
    requests: tuple[Request, ...]
    missing: int
    folds_cache_write: bool

    @property
    def client(self) -> str:
        """The client without its version."""
        return self.name.split("-")[0]

    def counted(self) -> list[Request]:
        """The requests that usage must count."""
        return [request for request in self.requests if request.is_counted]

    def refused(self) -> list[Request]:
        """The requests that the stub refused."""
        return [request for request in self.requests if request.status != OK]

    def logs(self) -> Iterator[Path]:
        """Every file that the client left."""
        return (path for path in sorted(self.folder.rglob("*")) if path.is_file() and path.name != _TRUTH)

    def holds(self, *texts: str) -> bool:
        """Whether any byte of the logs is one of these texts."""
        wanted = [text.encode() for text in texts]
        return any(text in content for content in _contents(self.folder) for text in wanted)

    def shows(self, request: Request) -> bool:
        """Whether the logs hold the answer's numbers: its input or its output as a number of JSON."""
        tokens = request.tokens
        assert tokens is not None
        total = tokens.input + tokens.cache_read
        return any(self.holds(f":{number},", f":{number}}}", f": {number},") for number in (tokens.input, total))


@cache
def _contents(folder: Path) -> tuple[bytes, ...]:
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != _TRUTH)
    return tuple(path.read_bytes() for path in paths)


def is_here() -> bool:
    """The folder is named."""
    return bool(os.environ.get(VARIABLE))


def folder() -> Path:
    """The folder of homes."""
    return Path(os.environ[VARIABLE])


def home_names() -> list[str]:
    """Every home that is there."""
    return sorted(path.name for path in folder().iterdir() if path.is_dir()) if is_here() else []


def needs_homes(*names: str) -> pytest.MarkDecorator:
    """Skip without the folder, or where one of these homes is not in it."""
    if not is_here():
        return pytest.mark.skip(reason=f"{VARIABLE} is not set: {len(names)} homes not compared")
    absent = [name for name in names if name not in home_names()]
    return pytest.mark.skipif(bool(absent), reason=f"no home {', '.join(absent)}")


@cache
def load_home(name: str) -> Home:
    """Read a home's truth."""
    path = folder() / name
    allowed = _allowed().get(name, {})
    rows = json.loads((path / _TRUTH).read_text("utf-8"))["requests"]
    return Home(
        name=name,
        folder=path,
        requests=tuple(_request(row) for row in rows),
        missing=allowed.get("missing", 0),
        folds_cache_write=bool(allowed.get("fold_cache_write")),
    )


def _allowed() -> Mapping[str, Any]:
    path = folder() / "allowed.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def _request(row: Mapping[str, Any]) -> Request:
    delivered = bool(row.get("delivered"))
    return Request(
        number=row["n"],
        run=row["run"],
        time=row["time"],
        model=row["model"],
        api=row["api"],
        status=row["status"],
        tokens=Tokens(**row["usage"]) if row["usage"] else None,
        whole=delivered or row.get("raw") is not None,
        delivered=delivered,
        side=row["side"],
        prompt=row.get("prompt") or "",
        session=row.get("client_session"),
        action=row["action"],
    )
