"""`sessionlog budget`: what is left for a person, and an exit code for a script that never passes in silence."""

import csv
import io
import re
import sqlite3

import pytest

from sessionlog.analytics.budgets.budget import Budget
from sessionlog.cli import app

WHEN = ("--now", "2026-11-20T12:00:00Z", "--tz", "UTC")
BUDGETS = """
[budgets.daily]
usd = 1
period = "day"

[budgets.block]
tokens = 10_000
window = "5h"
warn = 5

[budgets.small]
requests = 1
window = "7d"
model = "gpt-*"
"""


@pytest.fixture
def kept(home, record):
    """Two sessions of one morning, of two models, with costs, and one of another day."""
    folder = home / ".local" / "state" / "sessionlog" / "sessions"
    record(folder, "s-first", cost=0.5)
    record(folder, "s-second", model="gpt-5.3-codex", provider="openai", cost=0.25)
    record(folder, "s-third", start="2026-09-01T10:00:00Z", cost=9)
    return folder


@pytest.fixture
def ledger(home):
    """Where the ledger is unless told otherwise."""
    return home / ".local" / "share" / "sessionlog" / "ledger.sqlite"


# --- help


@pytest.mark.parametrize("part", app.SUBCOMMANDS["budget"])
def test_every_part_has_help_with_an_example(cli, part):
    """And says what it does in one line of the overview."""
    ran = cli("budget", part, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert f"Usage: sessionlog budget {part} " in ran.out
    assert re.search(rf"^  Example: sessionlog budget {part}\b", ran.out, re.MULTILINE)
    assert "--json " in ran.out
    assert re.search(
        rf"^  {part} +{re.escape(app.SUBCOMMANDS['budget'][part])}$", cli("budget", "--help").out, re.MULTILINE
    )


def test_options_may_stand_before_the_command(cli):
    """They count as behind it."""
    assert cli("budget", "--json", "check") == cli("budget", "check", "--json")


# --- without budgets


@pytest.mark.parametrize(("words", "code"), [((), 0), (("check",), 2)])
def test_no_budgets(cli, home, words, code):
    """One sentence and what to paste; a check that checks nothing is a mistake."""
    ran = cli("budget", *words)
    config = home / ".config" / "sessionlog" / "config.toml"
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.splitlines() == [
        f"no budgets yet; a first one in {config} would be",
        "",
        "[budgets.daily]",
        "usd = 20",
        'period = "day"',
    ]


EMPTY = {
    "window": None, "group_by": [], "rows": [], "totals": None, "provenance": None, "hidden_rows": 0,
    "archived_sessions": 0, "problems": {"count": 0, "first": []},
}  # fmt: skip


def test_no_budgets_for_a_program(cli):
    """It gets its document."""
    ran = cli("budget", "--json")
    assert ran.json == {"schema": "sessionlog.budget/2", "exceeded": [], "warned": [], **EMPTY}


@pytest.mark.parametrize("words", [(), ("check",)])
def test_a_budget_that_cannot_be_understood(cli, config, words):
    """Is named, with what is allowed."""
    config('[budgets.daily]\nusd = "a lot"\nperiod = "day"\n')
    ran = cli("budget", *words)
    assert (ran.code, ran.out) == (2, "")
    assert "[budgets.daily] usd must be a number above 0" in ran.err


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize(("words", "code"), [((), 2), (("check",), 2), (("check", "daily"), 0), (("check", "typo"), 2)])
def test_one_mistake_leaves_the_other_budgets(cli, config, home, words, code):
    """They are shown; a check passes only where the mistaken one is not asked for."""
    config('[budgets.daily]\nusd = 1\nperiod = "day"\n[budgets.typo]\ndollars = 20\nperiod = "day"\n')
    ran = cli("budget", *words, *WHEN)
    assert ran.code == code
    assert ("daily" in ran.out) == (not words)
    said = " ".join(ran.err.split())
    path = home / ".config" / "sessionlog" / "config.toml"
    assert (f"{path}: [budgets.typo] unknown key 'dollars' (did you mean 'usd'?)" in said) == (code == 2)


# --- what is left


@pytest.mark.usefixtures("kept")
def test_the_table(cli, config):
    """Each with what is used, of what, and when it resets."""
    config(BUDGETS)
    ran = cli("budget", *WHEN)
    assert (ran.code, ran.err) == (0, "")
    rows = [line.split() for line in ran.out.splitlines()]
    assert [row[:2] for row in rows[3:6]] == [["daily", "day"], ["block", "5h"], ["small", "7d"]]
    assert rows[3][3:7] == ["$0.75", "$1.00", "$0.25", "75"]
    assert ("warn" in rows[4], "exceeded" in rows[5]) == (True, True)


@pytest.mark.usefixtures("kept")
def test_the_document(cli, config):
    """By name, in the shape of every budget, with what is not known."""
    config(BUDGETS)
    ran = cli("budget", "--json", *WHEN)
    assert (ran.code, ran.err) == (0, "")
    assert (ran.json["exceeded"], ran.json["warned"]) == (["small"], ["block"])
    assert [one["name"] for one in ran.json["rows"]] == ["daily", "block", "small"]
    assert ran.json["rows"][0] == {
        "name": "daily", "used": 0.75, "limit": 1.0, "percent": 75.0, "unit": "usd", "window_seconds": 86_400,
        "resets_at": "2026-11-21T00:00:00.000000Z", "source": "config", "reserved": 0.0, "level": "ok",
        "burn_per_hour": 0.0, "runs_out_at": None, "unpriced_requests": 0, "session": None, "unknown": [],
    }  # fmt: skip


@pytest.mark.usefixtures("kept")
def test_csv_is_the_document(cli, config):
    """Every value under its name."""
    config(BUDGETS)
    header, *rows = csv.reader(io.StringIO(cli("budget", "--csv", *WHEN).out))
    document = cli("budget", "--json", *WHEN).json["rows"]
    assert [row[0] for row in rows] == [one["name"] for one in document]
    assert header == list(document[0])
    assert rows[0][1:5] == ["0.75", "1.0", "75.0", "usd"]


@pytest.mark.usefixtures("kept")
def test_what_is_reserved_is_shown(cli, config, home):
    """As an agent has asked for it."""
    config(BUDGETS)
    assert Budget.named("daily", env={"HOME": str(home)}).allows(0.125)
    assert cli("budget", "--json").json["rows"][0]["reserved"] == 0.125


def test_formats_exclude_each_other(cli):
    """Two at once are a mistake."""
    assert cli("budget", "--json", "--csv").code == 2


# --- check


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 1, ["small: exceeded: 1 req of 1 per 7d (100 %), begins to reset 27 Nov 10:00"]),
        (("daily",), 0, []),
        (("daily", "block"), 0, []),
        (("daily", "block", "--warn"), 1, ["block: nearly used: 2.0k tok of 10.0k per 5h (20 %), begins to reset 15:00"]),
    ],
)  # fmt: skip
def test_check(cli, config, words, code, said):
    """1 and a sentence for each that is exceeded; silence for those that are not."""
    config(BUDGETS)
    ran = cli("budget", "check", *words, *WHEN)
    assert (ran.code, ran.out, ran.err.splitlines()) == (code, "", said)


@pytest.mark.usefixtures("kept")
def test_check_for_a_program(cli, config):
    """The same document, with the same exit code."""
    config(BUDGETS)
    ran = cli("budget", "check", "--json", *WHEN)
    assert (ran.code, ran.json["exceeded"]) == (1, ["small"])
    assert [one["name"] for one in ran.json["rows"]] == ["daily", "block", "small"]


def test_check_of_a_budget_that_every_session_has(cli, config, record, home):
    """That of the last ten minutes counts, though it has come to an end; without one nothing is known, which is said."""
    config('[budgets.each]\nrequests = 1\nper = "session"\n')
    record(home / ".local" / "state" / "sessionlog" / "sessions", "s-between")
    ran = cli("budget", "check", "--now", "2026-11-20T10:05:00Z", "--tz", "UTC")
    assert (ran.code, ran.err) == (1, "each: exceeded: 1 req of 1 per session (100 %) in session s-between\n")
    ran = cli("budget", "check", *WHEN)
    assert (ran.code, ran.err) == (0, "each: no session had an event in the last ten minutes\n")
    [found] = cli("budget", "--json", *WHEN).json["rows"]
    assert (found["used"], found["percent"], found["unknown"]) == (
        None, None, ["no session had an event in the last ten minutes"],
    )  # fmt: skip


def test_check_of_an_unknown_name(cli, config):
    """Is a mistake, not a budget that is kept."""
    config(BUDGETS)
    ran = cli("budget", "check", "dayly")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "sessionlog: there is no budget 'dayly'; there are daily, block, small\n"


@pytest.mark.parametrize("words", [(), ("check", "daily")])
def test_a_ledger_that_is_none(cli, config, ledger, words):
    """3, with the reason: nothing else knows what was used."""
    config(BUDGETS)
    ledger.parent.mkdir(parents=True)
    ledger.write_bytes(b"this is no database, but somebody's letter" * 100)
    ran = cli("budget", *words)
    assert (ran.code, ran.out) == (3, "")
    assert "what is left is not known: " in ran.err
    assert "file is not a database" in ran.err


@pytest.mark.usefixtures("kept")
def test_a_ledger_that_is_damaged(cli, config, ledger):
    """Whatever is missing."""
    config(BUDGETS)
    assert cli("budget", "check", "daily").code == 0
    connection = sqlite3.connect(ledger)
    connection.execute("DROP TABLE reservations")
    connection.commit()
    connection.close()
    ran = cli("budget", "check", "daily")
    assert (ran.code, "no such table: reservations" in ran.err) == (3, True)


def test_a_model_without_a_price(cli, config, record, kept):
    """Not known is no pass; what is exceeded for certain is still found."""
    config(BUDGETS)
    record(kept, "s-mystery", model="mystery", provider="nobody")
    ran = cli("budget", "check", "daily", *WHEN)
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith("not all is known: there is no price for nobody/mystery (requests: 1), so at least $0.75")
    ran = cli("budget", "check", *WHEN)
    assert ran.code == 1
    assert ran.err.splitlines()[0].startswith("small: exceeded")
    assert ran.err.splitlines()[1].startswith("not all is known of daily: there is no price for nobody/mystery")
    assert cli("budget", "check", "block", *WHEN).code == 0


# --- reset


@pytest.mark.usefixtures("kept")
def test_reset(cli, config, ledger):
    """A ledger that was deleted is another one until a person says that this is right."""
    config(BUDGETS)
    assert cli("budget", "check", "daily").code == 0
    for path in ledger.parent.iterdir():
        path.unlink()
    ran = cli("budget", "check", "daily")
    assert ran.code == 3
    assert "was deleted or replaced since it was last asked: `sessionlog budget reset` confirms that" in ran.err
    ran = cli("budget", "reset")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"confirmed: the ledger {ledger} was deleted or replaced since it was last asked\n"
    assert cli("budget", "check", "daily").code == 0
    assert cli("budget", "reset").out == "there was nothing to confirm\n"
    assert cli("budget", "reset", "--json").json == {
        "schema": "sessionlog.budget.reset/1",
        "path": str(ledger),
        "confirmed": [],
    }
