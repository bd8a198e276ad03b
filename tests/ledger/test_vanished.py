"""Counted once is counted: what vanishes from a log that is rewritten shorter is remembered, as deleted logs are."""

import errno
import random
from itertools import count

import pytest

from sessionlog.analytics.usage import aggregate_usage
from sessionlog.ledger.ask import Where, ask
from tests.ledger.entries import PRICES
from tests.ledger.little_home import LittleHome
from tests.ledger.little_logs import NOW, PATHS
from tests.ledger.test_missing import failing

MAIN, _, FORK, _ = PATHS["claude"]
_SUMS = "SELECT COALESCE(SUM(requests), 0), COALESCE(SUM(output), 0) FROM quarter_hours"


@pytest.fixture
def home(tmp_path):
    """A home with one log of six responses."""
    home = LittleHome(tmp_path)
    home.append(MAIN, [("prompt", 0, 1), *(("answer", number, number + 1) for number in range(6))])
    return home


def counted(home, *, live=False, ledger=True):
    """Requests and output tokens that count."""
    where = Where(ledger=home.ledger if ledger else None, env=home.env, prices=PRICES, live=live)
    [sums] = ask(where, lambda book: book.query(_SUMS, {}))
    return sums


def rewrite(home, path, lines):
    """Write a log anew with these of its lines."""
    home._write(path, b"".join(lines), "wb")


def lines_of(home, path):
    return home.content(path).splitlines(keepends=True)


def test_what_vanished_counts_and_live_leaves_it_out(home):
    """In reports; the session is not one that is only remembered: its log is there."""
    before = counted(home)
    rewrite(home, MAIN, lines_of(home, MAIN)[:3])
    assert counted(home) == before
    assert counted(home, live=True) == counted(home, ledger=False) < before


def test_reports_name_the_session_as_remembered(home):
    """Until all of it is in its log again; its log is there, so it is not listed as archived."""
    lines = lines_of(home, MAIN)
    assert remembered(home) == (0, 0)
    rewrite(home, MAIN, lines[:3])
    assert remembered(home) == (1, 0)
    rewrite(home, MAIN, lines)
    assert remembered(home) == (0, 0)


def remembered(home):
    """Sessions that are named as remembered, and those that are archived."""
    report = aggregate_usage(env=home.env, ledger=home.ledger, prices=PRICES, now=NOW)
    [(archived,)] = ask(
        Where(ledger=home.ledger, env=home.env, prices=PRICES),
        lambda book: book.query("SELECT SUM(archived) FROM sessions", {}),
    )
    return report.archived_sessions, archived


def test_what_is_in_the_log_again_counts_once(home):
    """Whether it is appended, or the log is as it was."""
    before, lines = counted(home), lines_of(home, MAIN)
    rewrite(home, MAIN, lines[:3])
    counted(home)
    rewrite(home, MAIN, lines[:2] + lines[4:])
    assert counted(home) == before
    home.append(MAIN, [("answer", 1, 2)])
    assert counted(home) == before
    rewrite(home, MAIN, lines)
    assert counted(home) == counted(home, live=True) == before


def test_copies_in_other_logs_count_once(home):
    """A fork that was made before, and one that is made afterwards."""
    home.copy(MAIN, FORK, 5)
    before = counted(home)
    whole = lines_of(home, MAIN)
    rewrite(home, MAIN, whole[:2])
    assert counted(home) == before
    rewrite(home, FORK, whole)
    assert counted(home) == counted(home, live=True) == before


def test_a_number_that_changes_is_the_logs(home):
    """A response that is in the log has what the log has."""
    counted(home)
    home.change_digit(MAIN, 3)
    assert counted(home) == counted(home, ledger=False)


def test_a_log_that_cannot_be_read_keeps_its_responses(home):
    """Also among the live ones."""
    before = counted(home)
    rewrite(home, MAIN, lines_of(home, MAIN)[:3])
    with failing(home.at("c"), errno.EACCES):
        assert counted(home) == counted(home, live=True) == before
    assert counted(home) == before


def test_a_log_that_is_deleted_then_leaves_all(home):
    """What vanished before, too."""
    before = counted(home)
    rewrite(home, MAIN, lines_of(home, MAIN)[:3])
    counted(home)
    home.delete(MAIN)
    assert counted(home) == before
    assert counted(home, live=True) == (0, 0)


@pytest.mark.parametrize("seed", range(8))
def test_no_rewriting_lowers_what_was_counted(home, seed):
    """Of one log and its fork, to any of their lines, and back; a live report is a scan of what is there."""
    draw = random.Random(seed)
    home.copy(MAIN, FORK, 4)
    home.append(FORK, [("answer", 7, 3), ("answer", 8, 1)])
    whole = {path: lines_of(home, path) for path in (MAIN, FORK)}
    before, answers = counted(home), count(20)
    for _ in range(8):
        path = draw.choice((MAIN, FORK))
        match draw.randrange(4):
            case 0:
                home.append(path, [("answer", next(answers), draw.randrange(1, 9))])
                whole[path] += lines_of(home, path)[-1:]
            case 1:
                rewrite(home, path, whole[path])
            case _:
                rewrite(home, path, [line for line in whole[path] if draw.random() < 0.5])
        now = counted(home)
        assert all(one >= other for one, other in zip(now, before, strict=True))
        assert counted(home, live=True) == counted(home, ledger=False)
        before = now
    for path, lines in whole.items():
        rewrite(home, path, lines)
    assert counted(home) == counted(home, live=True) == before
