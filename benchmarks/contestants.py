"""How each tool is asked for the same report, in a place of its own, and where its answer keeps the totals.

Nobody sees settings, logs, ledgers or caches but those in its own folder. A cold contestant finds that folder empty, a
warm one finds what the run before has left.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.measure import READ_EVERY_BYTE, STAT_EVERY_FILE, Measured, run_into
from benchmarks.peers import Tools

CLASSES = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
COUNTED = ("requests", "failed_requests", *CLASSES)

SOURCES = {"claude-code": ("claude", "CLAUDE_CONFIG_DIR"), "codex": ("codex", "CODEX_HOME")}
"""Source → the peers' word for it (also the folder's name), and the variable that names its home."""

_DUCKDB = """
import glob, sys
import duckdb
usage = "STRUCT(usage STRUCT(input BIGINT, output BIGINT, cache_read BIGINT, cache_write BIGINT))"
print(duckdb.sql(f'''
    SELECT sum(data.usage.input), sum(data.usage.output), sum(data.usage.cache_read), sum(data.usage.cache_write)
    FROM read_ndjson({glob.glob(sys.argv[1] + "/*")}, columns = {{type: 'VARCHAR', data: '{usage}'}}, ignore_errors = true)
    WHERE type = 'llm.response'
''').fetchall())
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Week:
    """Seven days, as each tool spells them: up to the start of the day after the last."""

    first: str
    last: str
    after: str

    @property
    def ours(self) -> tuple[str, ...]:
        """Our words for it."""
        return ("--since", "7d", "--now", f"{self.after}T00:00:00Z", "--tz", "UTC")

    @property
    def theirs(self) -> tuple[str, ...]:
        """The peers' words for it."""
        return ("--since", self.first, "--until", self.last)


@dataclass(slots=True, kw_only=True)
class Contestant:
    """One command, where it keeps what it keeps, and what its runs took.

    Attributes:
        name: The tool, and what is special about it.
        command: What to run.
        state: Its folder: home, settings, ledger or cache.
        env: Variables beyond the usual.
        cold: Empty the folder before each run.
        read_totals: Takes the totals out of its answer.
        taken: What its runs took.
        out: The file of its last answer.
    """

    name: str
    command: Sequence[str]
    state: str
    env: dict[str, str] = field(default_factory=dict)
    cold: bool = False
    read_totals: Callable[[Any], dict[str, int]] | None = None
    taken: Measured = field(default_factory=Measured)
    out: str = ""

    def run(self) -> None:
        """Run it once."""
        if self.cold:
            shutil.rmtree(self.state, ignore_errors=True)
        kept = {name: value for name, value in os.environ.items() if name in {"PATH", "LANG", "LC_ALL", "TMPDIR"}}
        homes = {f"XDG_{name}_HOME": f"{self.state}/{name.lower()}" for name in ("CONFIG", "DATA", "STATE", "CACHE")}
        homes |= {"HOME": f"{self.state}/home", "SESSIONLOG_DIR": f"{self.state}/sessions"}
        for path in homes.values():
            os.makedirs(path, exist_ok=True)
        own = {"TZ": "UTC", "TERM": "dumb", "SESSIONLOG_LEDGER": f"{self.state}/ledger.sqlite3"}
        self.out = f"{self.state}.{id(self)}.out"
        run_into(self.out, self.command, kept | homes | own | self.env, self.taken)

    def answer(self) -> Any:
        """What it said in its last run; None if it failed or did not speak JSON."""
        try:
            with open(self.out, encoding="utf-8") as file:
                return json.load(file) if self.taken.code == 0 else None
        except ValueError:
            return None

    def complaint(self) -> str:
        """The last line of its errors."""
        with open(f"{self.out}.err", encoding="utf-8", errors="replace") as file:
            return next((line.strip() for line in reversed(file.readlines()) if line.strip()), "no word of why")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Puts the same question to each tool that is here."""

    tools: Tools
    folder: str

    def ours(
        self, home: str, source: str, *words: str, cold: bool = False, jobs: int = 0, narrow: bool = True
    ) -> list[Contestant]:
        """Our usage report over a home; of one process if so wished and if that is known."""
        env = {SOURCES[source][1]: home} if source in SOURCES else {"SESSIONLOG_DIR": home}
        words = (*(("--source", source) if narrow and source in SOURCES else ()), "--json", *words)
        commands = {"ours": self.tools.ours}
        if jobs:
            words = (*words, "--jobs", str(jobs))
            commands = {f"{name} --jobs {jobs}": command for name, command in commands.items()}
        return [
            Contestant(
                name=name, command=[*command, "usage", *words], state=self._state(home, source, name), env=env, cold=cold,
                read_totals=_our_totals,
            )
            for name, command in commands.items()
        ]  # fmt: skip

    def tokscale(self, home: str, source: str, *words: str, cold: bool = False) -> list[Contestant]:
        """Its report by model, with no network and an empty price cache: it prices nothing, which is in its favour."""
        if not self.tools.tokscale:
            return []
        word, variable = SOURCES[source]
        command = [self.tools.tokscale, "models", "--json", "--no-spinner", "--client", word, *words]
        env = {variable: home, "TOKSCALE_PRICING_CACHE_ONLY": "1"}
        state = self._state(home, source, "tokscale")
        return [
            Contestant(name="tokscale", command=command, state=state, env=env, cold=cold, read_totals=_tokscale_totals)
        ]

    def ccusage(self, home: str, source: str, *words: str, label: str = "ccusage") -> list[Contestant]:
        """Its report by day. It keeps nothing between two runs: there is no cold and no warm."""
        if not self.tools.ccusage:
            return []
        word, variable = SOURCES[source]
        command = [self.tools.ccusage, word, "daily", "--json", "--offline", *words]
        state, env = self._state(home, source, "ccusage"), {variable: home}
        return [Contestant(name=label, command=command, state=state, env=env, read_totals=_ccusage_totals)]

    def duckdb(self, home: str) -> list[Contestant]:
        """The sum of what the responses of native logs report: less than a report, so there is no total to compare."""
        if not self.tools.duckdb:
            return []
        command = [self.tools.duckdb, "-c", _DUCKDB, home]
        return [Contestant(name="duckdb read_ndjson", command=command, state=self._state(home, "native", "duckdb"))]

    def read_floor(self, home: str) -> Contestant:
        """Every byte read, nothing looked at."""
        return self._python("read every byte", READ_EVERY_BYTE, home)

    def stat_floor(self, home: str) -> Contestant:
        """Every file listed and looked at, none opened."""
        return self._python("scandir + stat", STAT_EVERY_FILE, home)

    def start_floor(self) -> Contestant:
        """Python itself."""
        return self._python("python -c pass", "pass", "floor")

    def _python(self, name: str, script: str, home: str) -> Contestant:
        command = [sys.executable, "-c", script, home]
        return Contestant(name=name, command=command, state=self._state(home, "any", "floor"))

    def _state(self, home: str, source: str, tool: str) -> str:
        words = (os.path.basename(os.path.dirname(home)), os.path.basename(home), source, tool)
        path = os.path.join(self.folder, "state", "-".join(words).replace(" ", "-"))
        os.makedirs(path, exist_ok=True)
        return path


def ccusage_tokens(row: dict[str, Any]) -> dict[str, int]:
    """The peer's names as ours; its `inputTokens` includes cached tokens if its total says so."""
    tokens = {
        "input_tokens": row["inputTokens"],
        "output_tokens": row["outputTokens"],
        "cache_read_tokens": row["cacheReadTokens"],
        "cache_write_tokens": row["cacheCreationTokens"],
    }
    if "reasoningOutputTokens" in row:
        tokens["reasoning_tokens"] = row["reasoningOutputTokens"]
    if row.get("totalTokens") == row["inputTokens"] + row["outputTokens"]:
        tokens["input_tokens"] -= row["cacheReadTokens"]
    return tokens


def _our_totals(report: Any) -> dict[str, int]:
    return {name: report["totals"][name] for name in COUNTED}


def _ccusage_totals(report: Any) -> dict[str, int]:
    return ccusage_tokens(report["totals"])


def _tokscale_totals(report: Any) -> dict[str, int]:
    """Its output excludes reasoning, which only the entries have."""
    reasoning = sum(entry["reasoning"] for entry in report["entries"])
    return {
        "input_tokens": report["totalInput"],
        "output_tokens": report["totalOutput"] + reasoning,
        "cache_read_tokens": report["totalCacheRead"],
        "cache_write_tokens": report["totalCacheWrite"],
        "reasoning_tokens": reasoning,
    }
