"""A machine for budgets: a home with logs of ours, a ledger, and two clocks that a test may set."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from sessionlog.analytics.budgets.budget import Budget
from sessionlog.analytics.budgets.clock import ClockReading
from sessionlog.events.times import format_time
from tests.ledger.entries import NOON, SECOND
from tests.sources.logs import answered, ended, start, write_log

CONFIG = '[prices."acme/m"]\ninput = 1_000_000\noutput = 0\n'
"""A token of acme's model `m` costs a dollar."""


@dataclass
class World:
    """One machine.

    Attributes:
        home: Where everything is.
        wall_ns: What the clock on the wall says.
        boot_ns: How long the machine has been running.
        boot: Which boot it is.
    """

    home: Path
    wall_ns: int = NOON
    boot_ns: int = 3600 * SECOND
    boot: str = "first-boot"
    rows: dict = field(default_factory=dict)

    @property
    def env(self):
        """The environment of somebody who lives there."""
        return {"HOME": str(self.home), "PATH": ""}

    @property
    def surroundings(self):
        """The same, as sources see it."""
        return self.env | {"SESSIONLOG_DIR": str(self.home / ".local" / "state" / "sessionlog" / "sessions")}

    @property
    def ledger(self):
        """The ledger's file."""
        return self.home / ".local" / "share" / "sessionlog" / "ledger.sqlite"

    @property
    def markers(self):
        """The files that know the ids of ledgers."""
        return sorted((self.home / ".local" / "state" / "sessionlog" / "budgets").iterdir())

    def clock(self):
        """What time it is."""
        return ClockReading(wall_ns=self.wall_ns, boot=self.boot, boot_ns=self.boot_ns)

    def wait(self, seconds):
        """Let time go by."""
        self.wall_ns += int(seconds * SECOND)
        self.boot_ns += int(seconds * SECOND)

    def configure(self, text):
        """Write config.toml."""
        path = self.home / ".config" / "sessionlog" / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def budget(self, **options):
        """A budget of five hours, unless told otherwise, that asks these clocks."""
        known = {"env": self.env, "clock": self.clock, "window": "5h"}
        if "per" in options or "period" in options:
            del known["window"]
        return Budget(**(known | options))

    def answer(self, name="s", *, tokens=1, model="m", end=False, at_ns=None, **usage):
        """A session's log gets a response of so many input tokens, at the present."""
        clock = format_time(self.wall_ns if at_ns is None else at_ns)
        rows = self.rows.setdefault(name, [start(clock, provider="acme", model=model)])
        rows.append(answered(clock, model=model, usage={"input": tokens, **usage}))
        if end:
            rows.append(ended(clock))
        path = self.home / ".local" / "state" / "sessionlog" / "sessions" / f"{name}.jsonl"
        write_log(path, *rows)
        os.utime(path, (1_700_000_000 + len(rows), 1_700_000_000 + len(rows)))
        return path


def said_unknown(budget, words):
    """Check the answers of a budget of which not all is known: no, no number, and the reason."""
    answer, left = budget.allows(1), budget.remaining()
    assert (bool(answer), left.amount) == (False, None)
    assert words in answer.reason
    assert words in left.reason
    assert answer.reason.startswith("what is left is not known: ")
