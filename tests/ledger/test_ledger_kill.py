"""A process that syncs is killed at any moment: what is in the ledger then was true, and the next sync makes it whole."""

import os
import random
import signal
import time
from unittest.mock import patch

import pytest

from sessionlog import aggregate_usage
from sessionlog.errors import LedgerUnusable
from sessionlog.ledger import sync as syncing
from sessionlog.ledger.ask import Where, ask
from sessionlog.ledger.opening import open_ledger
from tests.ledger.entries import PRICES
from tests.ledger.little_home import LittleHome
from tests.ledger.little_logs import NOW, PATHS
from tests.ledger.little_reports import of_ledger, of_scan
from tests.reliability.children import fork, wait

LOGS = [f"s/k{number}.jsonl" for number in range(12)]


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home of a dozen sessions with a log each, and two agents that copy."""
    monkeypatch.setitem(PATHS, "native", tuple(LOGS))
    return LittleHome(tmp_path)


def grow(home, chance):
    """More is logged; now and then a log is deleted or begins again."""
    for path in [*chance.sample(LOGS, 8), *PATHS["claude"], *PATHS["codex"]]:
        kind = {"s": "answer", "c": "answer", "x": "count"}[path[0]]
        home.append(path, [(kind, chance.randrange(5), chance.randrange(1, 9)) for _ in range(3)])
    if chance.random() < 0.3:
        home.delete(chance.choice([path for path in LOGS if home.at(path).exists()]))
    home.truncate(chance.choice([path for path in LOGS if home.at(path).exists()]), 6)


def per_session(book):
    """Session → its output tokens, and how often it was answered."""
    sql = """SELECT s.session, SUM(r.output), SUM(r.requests) FROM quarter_hours r JOIN sessions s ON s.id = r.session_id
             WHERE s.source = 'native' GROUP BY 1"""
    return {name: (output, requests) for name, output, requests in book.query(sql, {})}


def sums_of_copies(book):
    """Cells and what counts, which must be the same sums at any time."""
    return [
        book.query(f"SELECT SUM(output), SUM(requests), SUM(cost_nano), SUM(estimate_nano) FROM {table}", {})
        for table in ("quarter_hours", "records")
    ]


def look(path):
    """What a reader sees who does not sync: the numbers by session, and that sums are sums."""
    book = open_ledger(path, PRICES)
    with book.reading():
        cells, records = sums_of_copies(book)
        assert cells == records
        seen = per_session(book)
    book.close()
    return seen


def sync_until_killed(home, by_log):
    """What the child does."""
    with patch.object(syncing, "BATCH", 1 if by_log else syncing.BATCH):
        while True:
            aggregate_usage(env=home.env, ledger=home.ledger, jobs=1, prices=PRICES, now=NOW)


def kill_syncs(home, count, seed):
    """Kill so many processes while they sync, and look at the ledger before, meanwhile and after."""
    chance = random.Random(seed)
    of_ledger(home, PRICES)
    before = {}
    killed = 0
    for number in range(count):
        grow(home, chance)
        after = ask(Where(env=home.env, prices=PRICES), per_session)
        began = look(home.ledger)
        child = fork(lambda number=number: sync_until_killed(home, number % 2))
        ends = time.monotonic() + chance.random() * 0.03
        while True:
            for session, told in look(home.ledger).items():
                assert told in (began.get(session), after.get(session), before.get(session)), (seed, number, session)
            if time.monotonic() > ends:
                break
        os.kill(child, signal.SIGKILL)
        killed += wait(child) == -signal.SIGKILL
        for session, told in look(home.ledger).items():
            assert told in (began.get(session), after.get(session)), (seed, number, session)
        if chance.random() < 0.6:
            assert of_ledger(home, PRICES, live=True) == of_scan(home, PRICES), (seed, number)
            before = after
    assert killed == count
    assert of_ledger(home, PRICES, live=True) == of_scan(home, PRICES)


def test_p23_a_killed_sync_leaves_true_numbers(home):
    """Ten kills; every number that is seen is the one before or the one after."""
    kill_syncs(home, 10, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(5))
def test_p23_many_killed_syncs_leave_true_numbers(home, seed):
    """A hundred, and twenty at a time with one history."""
    kill_syncs(home, 20, seed=100 + seed)


def test_a_sync_killed_after_some_logs_has_these(home):
    """What was committed is not read again, and what was not is read."""
    for path in LOGS[:6]:
        home.append(path, [("answer", 1, 5)])

    def die_after_three():
        def scanner(jobs, sources, prices):
            yield from syncing.scan_here(jobs[:3], sources, prices)
            os.kill(os.getpid(), signal.SIGKILL)

        with patch.object(syncing, "BATCH", 1):
            of_ledger(home, PRICES, scanner=scanner)

    assert wait(fork(die_after_three)) == -signal.SIGKILL
    with pytest.raises(LedgerUnusable, match="first time"):
        open_ledger(home.ledger, write=False)  # nothing was decided about copies yet
    jobs = []

    def scanner(work, sources, prices):
        jobs.extend(work)
        return syncing.scan_here(work, sources, prices)

    assert of_ledger(home, PRICES, scanner=scanner) == of_scan(home, PRICES)
    assert len(jobs) == 3
