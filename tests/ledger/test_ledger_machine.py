"""The ledger equals a full scan: of the logs that are there, and without `live` also of those that are no more.

A machine does to a small home what agents, people, backups and clocks do, looks now and then, and compares whole
reports. For logs that are gone it remembers what they said when they were last read: a scan of a home made of that is
what the ledger has to say without them.
"""

import os
import sqlite3
import sys
import tempfile
from contextlib import ExitStack, closing, contextmanager
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from msgspec.structs import replace

from sessionlog.errors import LogNotReadable
from sessionlog.ledger import opening, scanning
from sessionlog.ledger import sync as syncing
from sessionlog.ledger.freshness import changed_logs
from sessionlog.ledger.problems import BUSY
from sessionlog.ledger.verify import verify_ledger
from sessionlog.pricing.book import PriceBook
from sessionlog.pricing.own_prices import parse_own_prices
from sessionlog.pricing.price_list import load_price_list
from sessionlog.sources import registry
from sessionlog.sources.registry import all_sources
from tests.ledger.entries import PRICES
from tests.ledger.little_home import LONG_AGO, LittleHome
from tests.ledger.little_logs import KINDS, PATHS, SIDE_FILE, agent_of
from tests.ledger.little_reports import counted, everything, of_ledger, of_scan, unpacked
from tests.profiles import STORIES

DEARER = PriceBook(load_price_list(), parse_own_prices({"acme/*": {"input": 3, "output": 9}}))
HEAD = scanning.PRINT
PHASES = (Phase.generate, Phase.shrink)

logs = st.sampled_from([path for paths in PATHS.values() for path in paths])
rows = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 5), st.integers(1, 9)), min_size=1, max_size=4)
few = st.integers(0, 9)


WAYS = ("look_elsewhere", "look_and_be_killed", "look_at_other_prices", "look_while_another_writes", "read_on")


class Killed(BaseException):
    """What ends a sync in the middle."""


class Homes(RuleBasedStateMachine):
    """A home, its ledger, and what the logs said when they were last read."""

    def __init__(self):
        super().__init__()
        self.home = LittleHome(tempfile.mkdtemp())
        self.prices = PRICES
        self.parser = 0
        self.broken = ""
        self.told = {}  # path → its bytes when it was read last
        self.inodes = {}  # path → which file it was then
        self.side = None  # what the side file said when the log beside it was read last
        self.other = None
        self.known = self.expected = None  # what was scanned last in place of memory, and what it says

    @initialize(torn=st.booleans())
    def begin(self, torn):
        """A home in which responses and calls have copies: in a fork, in a sub-agent's log, in an archive, on the wire."""
        main, part, fork, _ = PATHS["claude"]
        thread, other, archived = PATHS["codex"]
        told = [("prompt", 0, 1), ("answer", 0, 2), ("calls", 1, 3), ("result", 1, 2), ("begins", 2, 1), ("echo", 3, 1)]
        self.home.append(main, told)
        self.home.append(part, [("prompt", 0, 1), ("answer", 3, 4), ("answer", 0, 1)])
        self.home.copy(main, fork, 4)
        self.home.append(fork, [("answer", 4, 5), ("calls", 1, 4)], torn=torn)
        self.home.append(thread, [("turn", 0, 1), ("count", 0, 4), ("call", 1, 1), ("output", 1, 3), ("count", 0, 2)])
        self.home.copy(thread, archived, 4)
        self.home.append(other, [("turn", 1, 1), ("count", 0, 4)])
        self.home.append("s/n1.jsonl", [("asked", 0, 1), ("answer", 0, 3), ("tool", 1, 2)])
        self.home.append("s/wire.jsonl", [("asked", 0, 1), ("answer", 0, 2), ("answer", 5, 1), ("cheap", 0, 4)])
        self.look(first=False)

    def teardown(self):
        try:
            if not sys.exc_info()[0]:
                self.look(first=True)
                with self.world():
                    found = verify_ledger(self.home.ledger, self.prices, self.home.env)
                    assert found.is_whole, found  # row by row, however a log was read on
        finally:
            self.end()

    def end(self):
        if self.other is not None:
            self.other.close()
        self.home.close()

    # What happens to logs.

    def drawn(self, path, drawn):
        kinds = KINDS[agent_of(path)]
        return [(kinds[kind % len(kinds)], identity, amount) for kind, identity, amount in drawn]

    def there(self, path, *, plain=False):
        """The log itself or its packed copy, if either is there."""
        found = [one for one in (path, f"{path}.gz") if self.home.at(one).exists()]
        return next((one for one in found if not (plain and one.endswith(".gz"))), None)

    def arrive(self, path):
        """Let a log that cannot be read look changed: one that does not is not read, nor is it known to be broken.

        Also one that comes back with its old time: now and then it is given its old inode, too.
        """
        if path == self.broken and self.home.at(path).exists():
            self.home.stamp(path)

    def is_hidden(self, path):
        """Whether a path is a packed copy beside a log of ours: it is not looked at, also if that cannot be read."""
        return path.endswith(".gz") and agent_of(path) == "native" and self.home.at(path[:-3]).exists()

    def may_become(self, path, other):
        return self.there(path, plain=True) and path != other and agent_of(path) == agent_of(other)

    @rule(path=logs, drawn=rows, torn=st.booleans(), fresh=st.integers(0, 3))
    def append(self, path, drawn, torn, fresh):
        path = self.there(path) or path
        self.home.append(path, self.drawn(path, drawn), torn=torn, fresh=not fresh)

    @rule(path=logs, drawn=rows)
    def append_with_an_old_time(self, path, drawn):
        if self.there(path, plain=True):
            before = self.home.at(path).stat().st_mtime_ns
            self.home.append(path, self.drawn(path, drawn))
            old = 2 * LONG_AGO * 10**9 - self.home.tick()  # never the same twice: a log may be as long again as before
            os.utime(self.home.at(path), ns=(0, min(before, old)))

    @rule(path=logs, number=few, how=st.sampled_from(("change_digit", "drop_line")))
    def rewrite(self, path, number, how):
        if self.there(path, plain=True):
            getattr(self.home, how)(path, number)

    @rule(path=logs, share=st.integers(0, 9))
    def truncate(self, path, share):
        path = self.there(path)
        if path:
            self.home.truncate(path, share)

    @rule(path=logs)
    def delete(self, path):
        path = self.there(path)
        if path:
            self.home.delete(path)

    @rule(path=logs)
    def restore(self, path):
        if not self.there(path):
            self.home.restore(path)
            self.arrive(path)

    @rule(path=logs, past=st.booleans())
    def touch(self, path, past):
        path = self.there(path)
        if path:
            self.home.stamp(path)
            if past:
                os.utime(self.home.at(path), ns=(0, self.home.tick() - 10**15))

    @rule(path=logs, other=logs, lines=st.integers(1, 12))
    def copy(self, path, other, lines):
        if self.may_become(path, other) and not self.there(other):
            self.home.copy(path, other, lines)

    @rule(path=logs, other=logs)
    def move(self, path, other):
        if self.may_become(path, other) and self.there(other) in {None, other}:
            self.home.move(path, other)
            self.arrive(other)

    @rule(path=logs)
    def pack(self, path):
        if self.there(path, plain=True) and not self.home.at(f"{path}.gz").exists():
            self.home.pack(path)

    @rule(kind=st.sampled_from(("", "Explore", "Plan")))
    def tell_kind(self, kind):
        self.home.tell_kind(kind)

    # What happens around them.

    @rule(dearer=st.booleans())
    def price(self, dearer):
        self.prices = DEARER if dearer else PRICES

    @rule()
    def raise_parser(self):
        self.parser += 1

    @rule(path=logs, broken=st.booleans())
    def break_source(self, path, broken):
        self.broken = path if broken else ""
        self.arrive(path)

    @contextmanager
    def world(self):
        """Sources as they are now: of another parser, and with a log that cannot be read."""
        number, broken = self.parser, self.broken and str(self.home.at(self.broken))

        def renewed(source):
            def scan(path, resume):
                if path == broken:
                    raise LogNotReadable(f"{path}: a broken disk")
                found = source.scan(path, resume)
                sessions = (replace(one, route=f"parser {number}") for one in found.sessions)
                return replace(found, sessions=tuple(sessions))

            return replace(source, parser_version=source.parser_version + number, scan=scan)

        sources = tuple(map(renewed, all_sources()))
        with ExitStack() as stack:
            stack.enter_context(patch("sessionlog.ledger.freshness.__version__", f"0.{number}"))
            stack.enter_context(patch.object(opening, "WAIT_SECONDS", 0.05))
            # no package that somebody installs meanwhile, and no new price list, is news in this home
            stack.enter_context(patch("sessionlog.ledger.freshness.sys", SimpleNamespace(path=())))
            stack.enter_context(patch("sessionlog.ledger.freshness._PRICES", str(self.home.folder / "none")))
            known = {source.id: source for source in sources}
            stack.enter_context(patch.object(registry, "source_of", known.__getitem__))
            stack.enter_context(patch.object(registry, "sources_there", lambda _: sources))
            yield

    # What is seen of it.

    @rule(first=st.booleans())
    def look(self, first):
        with self.world():
            if first:
                self.compare_with_memory()
            if not self.is_broken_log_kept():
                assert of_ledger(self.home, self.prices, live=True) == of_scan(self.home, self.prices)
            self.remember()
            self.compare_with_memory()
            self.compare_with_listing()

    def compare_with_listing(self):
        """Nothing is read or listed again while nothing has changed."""
        connection = sqlite3.connect(self.home.ledger)
        broken = self.broken and self.home.at(self.broken).exists()
        fresh = any(self.home.is_fresh(path) for path in self.home.logs() if not self.is_hidden(path))
        assert (changed_logs(connection, self.home.env, most=0) == []) == (not broken and not fresh)
        connection.close()

    def compare_with_memory(self):
        """The ledger's numbers are those of a home in which every log is as it was read last."""
        answer = of_ledger(self.home, self.prices)
        self.remember()
        if any(self.is_hidden(path) or (path.endswith(".gz") and path[:-3] in self.told) for path in self.told):
            return  # beside a log its packed copy is not looked at, in a home
        if self.has_vanished():
            return  # of such logs no scan tells the whole; `test_vanished` has their law
        known = frozenset(self.told.items()), self.side, id(self.prices), self.parser
        if known != self.known:  # one look compares twice, and scans the same logs alike
            self.known, self.expected = known, self.scan_of_memory()
        assert without_parser(counted(answer)) == without_parser(counted(self.expected))

    def has_vanished(self):
        """Whether a log was rewritten shorter: responses of it count that no log has."""
        with closing(sqlite3.connect(self.home.ledger)) as ledger:
            return bool(ledger.execute("SELECT 1 FROM files WHERE path LIKE '%:vanished'").fetchone())

    def scan_of_memory(self):
        """What a scan says of a home in which every log is as it was read last."""
        away = self.home.folder.with_name("away")
        self.home.folder.rename(away)
        try:
            for path, content in self.told.items():
                self.home.put(path, content, LONG_AGO * 10**9)
            if self.side is not None:
                self.home.put(SIDE_FILE, self.side, LONG_AGO * 10**9)
            broken, self.broken = self.broken, ""
            with self.world():
                expected = of_scan(self.home, self.prices)
            self.broken = broken
        finally:
            self.home.remove_folder()
            away.rename(self.home.folder)
        return expected

    def remember(self, read=None):
        """Take what a sync has read, and let go of what had only moved."""
        there = {path: self.home.at(path).read_bytes() for path in self.home.logs() if path != self.broken}
        arrived = [path for path in there if self.is_another(path, unpacked(path, there[path])[:HEAD])]
        for path in [path for path in self.told if not self.home.at(path).exists()]:
            told = unpacked(path, self.told[path])
            agent = agent_of(path)
            if told and any(unpacked(p, there[p]).startswith(told) for p in arrived if agent_of(p) == agent):
                del self.told[path]
        self.told |= there
        if any("subagents" in path for path in there):
            side = self.home.at(SIDE_FILE)
            self.side = side.read_bytes() if side.exists() else None
        self.inodes |= {path: self.home.at(path).stat().st_ino for path in there}

    def is_another(self, path, head):
        """Whether a log is not what it was when it was read last; one that has only grown is."""
        known = unpacked(path, self.told[path])[:HEAD] if path in self.told else b""
        grown = known and head.startswith(known) and self.home.at(path).stat().st_ino == self.inodes[path]
        return path not in self.told or (head != known and not grown)

    def is_broken_log_kept(self):
        """Whether a log that was read before cannot be read now: its records count, also among the live ones."""
        return self.broken in self.told and self.home.at(self.broken).exists()

    @rule(how=st.sampled_from(WAYS))
    def look_otherwise(self, how):
        """Look in another way than reports do that are asked alone, with the same prices, of the same places."""
        getattr(self, how)()

    def look_elsewhere(self):
        """Other places are asked for, then the same as before."""
        env = self.home.env | {"CODEX_HOME": str(self.home.folder / "none")}
        with self.world():
            found = of_ledger(self.home, self.prices, env=env, live=True)
            assert found == of_scan(self.home, self.prices, env=env) or self.is_broken_log_kept()
        self.look(first=False)

    def look_and_be_killed(self, count=1):
        """A sync that ends in the middle changes nothing."""

        def scanner(jobs, sources, prices):
            yield from syncing.scan_here(jobs[:count], sources, prices)
            raise Killed

        with self.world():
            try:
                of_ledger(self.home, self.prices, scanner=scanner)
            except Killed:
                return
            self.remember()

    def look_at_other_prices(self):
        """A question about other prices is answered and forgotten."""
        other = PriceBook(load_price_list(), parse_own_prices({"acme/*": {"input": 7, "output": 7}}))
        other.instead_of = self.prices
        with self.world():
            assert of_ledger(self.home, other, live=True) == of_scan(self.home, other) or self.is_broken_log_kept()
            self.remember()

    def look_while_another_writes(self):
        """Who cannot write says so, and gives the numbers as they were."""
        with self.world():
            before = of_ledger(self.home, self.prices)
            self.remember()
            writer = sqlite3.connect(self.home.ledger, isolation_level=None)
            writer.execute("BEGIN IMMEDIATE")
            self.home.append("s/n1.jsonl", [("answer", 1, 1)])
            answer = of_ledger(self.home, self.prices)
            writer.close()
            assert (counted(answer), answer["notes"]) == (counted(before), [*before["notes"], BUSY])

    def read_on(self):
        """Who reads sees one state, whatever is written meanwhile."""
        with self.world():
            of_ledger(self.home, self.prices)
            self.remember()
            reader = opening.open_ledger(self.home.ledger, self.prices)
            with reader.reading():
                before = everything(reader)
                self.home.append("c/projects/-w-a/22222222-2222-4222-8222-222222222222.jsonl", [("answer", 9, 9)])
                of_ledger(self.home, self.prices)
                self.remember()
                assert everything(reader) == before
            reader.close()


def without_parser(reports):
    """Reports without the one that shows by which parser something was read: what is gone cannot be read again."""
    kept = [report for report in reports if "route" not in report.get("group_by", ())]
    for report in kept:
        for one in report["rows"] if not report["group_by"] else ():
            one.pop("route", None)
    return kept


def run(examples, steps):
    """Run the machine; a failure prints its story."""
    chosen = settings(
        report_multiple_bugs=False, phases=PHASES,
        max_examples=examples, stateful_step_count=steps,
        suppress_health_check=list(HealthCheck), database=None,
    )  # fmt: skip
    run_state_machine_as_test(Homes, settings=chosen)


@pytest.mark.timeout(600)
def test_p23_the_ledger_equals_a_full_scan():
    """Whatever happens to logs between two looks, the ledger says what a scan of all of them says."""
    run(*STORIES["quick"])


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_p23_the_ledger_equals_a_full_scan_in_every_story():
    """The same for longer stories: forty take a minute, and $SESSIONLOG_STORIES says how many more are wanted."""
    run(int(os.environ.get("SESSIONLOG_STORIES") or 40), STORIES["slow"][1])
