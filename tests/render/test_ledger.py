"""The face of the ledger: what it keeps, what was found and done, in words that a person can act on."""

import re

import pytest

from sessionlog.analytics.ledger_report import LedgerReport
from sessionlog.ledger.schema import VERSION
from sessionlog.ledger.summary import KeptSource, Summary
from sessionlog.ledger.sync import Synced
from sessionlog.ledger.upkeep import Forgettable, Rebuilt, Rescued
from sessionlog.ledger.verify import Difference, Verified
from sessionlog.render.ledger import render_summary
from sessionlog.render.ledger_upkeep import (
    kept_note,
    render_forgettable,
    render_rebuilt,
    render_synced,
    render_verified,
)
from sessionlog.render.line import wrap_lines
from tests.ledger.entries import NOON, SECOND
from tests.ledger.little_logs import NOW
from tests.render.shown import view_of

EVIL = "\x1b[31mred\x1b[0m\r\n\u202e"
CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")

FULL = Summary(
    path="/home/ann/.local/share/sessionlog/ledger.sqlite", exists=True, bytes=12_345_678, tool_calls=45_678,
    oldest_ns=NOON - 400 * 86_400 * SECOND, newest_ns=NOON, synced_ns=NOON, priced_from="list",
    sources=(
        KeptSource(
            source="claude-code", files=1234, sessions=567, records=98_765, archived_files=12, archived_sessions=3,
            archived_records=456, elsewhere_files=1,
        ),
        KeptSource(source="native", files=1, sessions=1, records=1),
    ),
)  # fmt: skip


def shown(summary, width=200):
    found = render_summary(LedgerReport.of(summary), view_of({"width": width, "home": "/home/ann", "now": NOW}))
    return "".join(f"{line.plain}\n" for line in wrap_lines(found, width))


def said(**fields):
    verified = Verified(path="/ledger", **({"compared": 7} | fields))
    return "".join(f"{line.plain}\n" for line in wrap_lines(render_verified(verified), 200))


def test_a_summary_in_full():
    """Where, how large, from when to when, and by agent what is kept and what is only remembered."""
    assert shown(FULL).splitlines() == [
        "Ledger · ~/.local/share/sessionlog/ledger.sqlite",
        f"12.3 MB · schema version {VERSION} · 45,678 tool calls · oldest record 16 Oct 2025 12:00 · synced 20 Nov 12:00",
        "",
        "AGENT        LOGS  SESSIONS  RECORDS  GONE LOGS  REMEMBERED SESSIONS  REMEMBERED RECORDS  ELSEWHERE",
        "claude-code  1.2k       567    98.8k         12                    3                 456          1",
        "native          1         1        1          0                    0                   0          0",
        "───────────────────────────────────────────────────────────────────────────────────────────────────",
        "TOTAL        1.2k       568    98.8k         12                    3                 456          1",
        "456 records of 12 logs that are gone: only the ledger remembers (`sessionlog ledger backup FILE`)",
        "1 log not where logs are looked for now: left out",
    ]


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_summary_fits_the_terminal(width):
    """What is hidden is named."""
    lines = shown(FULL, width).splitlines()
    assert max(map(len, lines)) <= width
    assert any(line.startswith("hidden columns: ") for line in lines)


def test_a_summary_of_nothing():
    """Says where it would be and who makes it."""
    assert shown(Summary(path="/home/ann/x", exists=False)).startswith("Ledger · ~/x\nthere is none yet: ")
    assert "not synced yet" in shown(Summary(path="/x", exists=True))


def test_a_sync_says_only_what_there_is_to_say():
    """What was read always, what is gone or refused only if there is any."""
    assert render_synced(Synced(files=1, read=0, missing=0)) == "1 log: 0 read\n"
    whole = Synced(files=2000, read=1500, missing=3, failed=1)
    assert render_synced(whole) == "2,000 logs: 1,500 read, 3 gone since the last time, 1 could not be read\n"


def test_a_rebuild_of_a_damaged_file_says_where_it_is_kept():
    """And what was brought, and what was not."""
    synced = Synced(files=2, read=2, missing=0)
    assert render_rebuilt("/l", Rebuilt(synced=synced)) == "2 logs: 2 read\n"
    text = render_rebuilt(
        "/l", Rebuilt(synced=synced, damaged="/l.damaged-1", rescued=Rescued(files=3, records=1, calls=0, lost=2))
    )
    assert text.splitlines() == [
        "/l was damaged: it is kept as /l.damaged-1",
        "recovered from it: 1 record and 0 tool calls of 3 logs",
        "of 2 logs not everything could be read",
        "2 logs: 2 read",
    ]
    assert render_rebuilt("/l", Rebuilt(synced=None)) == ""


def test_what_would_be_forgotten():
    """With what stays, and why."""
    found = Forgettable(gone=(1, 2), records=1, sessions=2, there=3)
    assert render_forgettable(found) == "2 logs gone (1 record, 2 sessions)"
    assert kept_note(found) == "3 logs that fit were not deleted and will not be forgotten"


def test_a_whole_ledger_is_one_sentence():
    """What was proved."""
    assert said() == "7 sessions compared with the logs: no difference\n"


def test_differences_name_session_column_and_both_numbers():
    """Of many the first, and how many more."""
    one = Difference(source="native", session="s-1", column="output_tokens", ledger=12, logs=None)
    first, more, verdict = said(differences=(one,), difference_count=1001).splitlines()
    assert first == "✘ native:s-1 output_tokens: the ledger has 12, the logs have nothing"
    assert more == "  … and 1,000 differences more"
    assert verdict.startswith("the ledger is not right; `sessionlog ledger rebuild`")
    derived = said(derived=(one,), derived_count=1).splitlines()[0]
    assert derived == "✘ native:s-1 output_tokens: the ledger has 12, computed again it is nothing"


def test_logs_left_out_are_counted():
    """Nobody takes them for compared."""
    assert said(left_out=2).startswith("· 2 logs left out: new or changed since the last `sessionlog ledger sync`\n")


def test_nothing_of_a_log_acts_on_the_terminal():
    """Names, values, paths and errors are made harmless."""
    one = Difference(source=EVIL, session=EVIL, column="prompt", ledger=EVIL, logs=EVIL)
    texts = [
        said(differences=(one,), difference_count=1, broken=(EVIL,)),
        shown(Summary(path=EVIL, exists=True, sources=(KeptSource(source=EVIL),))),
        render_rebuilt(EVIL, Rebuilt(synced=None, damaged=EVIL, rescued=Rescued(files=1, records=1, calls=1, lost=1))),
    ]
    assert [CONTROLS.findall(text.replace("\n", "")) for text in texts] == [[], [], []]
