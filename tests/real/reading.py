"""What sessionlog reads in a home: its views of usage, sessions and tools, and the replay of every session.

All of it goes through the command line, so that nothing here depends on how logs are read. A home is copied first:
reading a database may write a `-shm` file beside it, and homes are not ours to change.
"""

import io
import json
import os
import shutil
import stat
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest.mock import patch

from sessionlog.cli.app import run as run_command
from tests.real.data import Home, Tokens

Json = Any
_USAGE = "SELECT * FROM usage ORDER BY time"
_SESSIONS = "SELECT * FROM sessions ORDER BY start"
_TOOLS = "SELECT * FROM tools ORDER BY time"
_WRITES = "SELECT input, cache_read, cache_write_1h FROM main.records"
"""The views have no column for cache writes that live for an hour."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """One row of the view `usage`."""

    row: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        """A column by its name."""
        try:
            return self.row[name]
        except KeyError as error:
            raise AttributeError(name) from error

    @property
    def tokens(self) -> Tokens:
        """Its token counts."""
        names = ("input", "cache_read", "cache_write", "output", "reasoning")
        return Tokens(**{name: self.row[f"{name}_tokens"] for name in names})

    @property
    def seconds(self) -> float | None:
        """Its time, seconds since 1970."""
        text = self.row["time"]
        return datetime.fromisoformat(text).timestamp() if text else None

    @property
    def has_tokens(self) -> bool:
        """Whether it used anything."""
        return any(self.tokens.classes)


@dataclass(frozen=True, kw_only=True)
class Replay:
    """A session's events."""

    session: str
    events: tuple[Json, ...]
    code: int

    @cached_property
    def text(self) -> str:
        """All events as one text."""
        return json.dumps(self.events, ensure_ascii=False)

    def responses(self) -> list[Tokens]:
        """The usage of every response; a copy with the same key is one response."""
        found: dict[Any, Tokens] = {}
        for number, event in enumerate(self.events):
            usage = event["data"].get("usage") if event["type"] == "llm.response" else None
            if usage and any(usage.get(name) for name in ("input", "output", "cache_read", "cache_write")):
                found.setdefault(event["data"].get("key", number), _tokens(usage))
        return list(found.values())

    def data(self, type_: str) -> list[Json]:
        """The data of every event of a type."""
        return [event["data"] for event in self.events if event["type"] == type_]


def _tokens(usage: Json) -> Tokens:
    names = ("input", "cache_read", "cache_write", "output", "reasoning", "cache_write_1h")
    return Tokens(**{name: usage.get(name, 0) for name in names})


@dataclass(frozen=True)
class Reading:
    """What is read in one home; each part when it is first asked for."""

    home: Home
    folder: Path
    _replays: dict[str, Replay] = field(default_factory=dict)

    @cached_property
    def records(self) -> list[Record]:
        """The rows of `usage`."""
        return [Record(row=row) for row in self._rows(_USAGE)]

    @cached_property
    def sessions(self) -> dict[str, Mapping[str, Any]]:
        """The rows of `sessions`, by id."""
        return {row["session"]: row for row in self._rows(_SESSIONS)}

    @cached_property
    def tools(self) -> list[Mapping[str, Any]]:
        """The rows of `tools`."""
        return self._rows(_TOOLS)

    @cached_property
    def one_hour_writes(self) -> dict[tuple[int, int], int]:
        """Cache writes that live for an hour, by the input and the cache reads of their response."""
        return {(row["input"], row["cache_read"]): row["cache_write_1h"] for row in self._rows(_WRITES)}

    def replay(self, session: str) -> Replay:
        """Replay a session; one that cannot be found has no events."""
        if session not in self._replays:
            code, out = self.run("replay", session, "--json")
            events = tuple(json.loads(line) for line in out.splitlines()) if code == 0 else ()
            self._replays[session] = Replay(session=session, events=events, code=code)
        return self._replays[session]

    def run(self, *arguments: str) -> tuple[int, str]:
        """Run a command in this home; its exit code and what it printed."""
        out = io.StringIO()
        with (
            patch.dict(os.environ, self._environment(), clear=True),
            redirect_stdout(out),
            redirect_stderr(io.StringIO()),
        ):
            code = run_command(arguments)
        return code, out.getvalue()

    def document(self, *arguments: str) -> Json:
        """The JSON document that a command prints."""
        code, out = self.run(*arguments, "--json")
        assert code == 0, arguments
        return json.loads(out)

    def _rows(self, question: str) -> Sequence[Mapping[str, Any]]:
        """Ask the ledger; the first question of a home reads its logs."""
        known = ("--no-sync",) if self._ledger.exists() else ()
        return self.document("sql", question, *known)["rows"]

    @property
    def _ledger(self) -> Path:
        return self.folder.parent / f"{self.home.name}.ledger.sqlite"

    def _environment(self) -> dict[str, str]:
        plain = {"TZ": "UTC", "SESSIONLOG_TZ": "UTC", "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "400"}
        named = {"HOME": str(self.folder), "SESSIONLOG_LEDGER": str(self._ledger)}
        return {**plain, **named, "PATH": os.environ.get("PATH", "")}


def read_home(home: Home, work: Path) -> Reading:
    """Copy a home below `work`, writable even if the home is not, and make its reading."""
    target = work / home.name
    shutil.copytree(home.folder, target, ignore=shutil.ignore_patterns("truth.json"))
    for path in (target, *target.rglob("*")):
        path.chmod(path.stat().st_mode | stat.S_IWUSR)
    return Reading(home, target)
