"""A home with sessions of ours that go on, and somebody who watches them at noon."""

from datetime import UTC
from pathlib import Path

from sessionlog.analytics.watch.watching import Watcher
from sessionlog.ledger.sync import scan_here
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.testing import FixedClock
from tests.ledger.entries import NOON, PRICES, SECOND

MINUTE = 60 * SECOND
MODEL = "claude-opus-4-5-20251101"


class Machine:
    """One machine.

    Attributes:
        home: Where everything is.
        jobs: What was scanned since it was last asked.
    """

    def __init__(self, folder):
        self.home = Path(folder)
        self.ledger = str(self.home / "ledger.sqlite")
        self.logs = self.home / ".local" / "state" / "sessionlog" / "sessions"
        self.logs.mkdir(parents=True)
        self.env = {"HOME": str(self.home), "PATH": ""}
        self.jobs = []

    def write(self, name, *steps, before=2 * MINUTE, end=None, **start):
        """Go on with a session: numbers are responses of so many input tokens, texts are tools that were called."""
        clock = FixedClock(step_ns=SECOND)
        clock.now_ns = NOON - before
        known = {"provider": "anthropic", "model": MODEL, "work_dir": "/src/api", "prompt": "go on", **start}
        log = SessionLogger(self.logs, name, clock=clock, **known)
        for step in steps:
            if isinstance(step, str):
                log.tool_call(step.rstrip("!"), {}, output="x", error="no" if step.endswith("!") else None)
            else:
                log.llm_response("ok", model=MODEL, usage={"input": step, "output": 10}, cost_usd=0.5)
        if end is None:
            log._release()  # as if its process were killed: `close` would end it
        else:
            log.end(end)
            log.close()
        return self.logs / f"{name}.jsonl"

    def scan(self, jobs, sources, prices):
        """The usual scanner, which tells what it gave."""
        for handed_over in scan_here(jobs, sources, prices):
            self.jobs += [(jobs[scanned.number], scanned) for scanned in handed_over.logs]
            yield handed_over

    def watcher(self, **options):
        """Somebody who watches."""
        known = {"ledger": self.ledger, "prices": PRICES, "env": self.env, "zone": UTC}
        return Watcher(**(known | options))
