"""A session without a response changes no number of any report: `sessions` lists it, and `usage` names how many there are."""

import io
import json
import sys

import pytest

from sessionlog.analytics.budgets.budget import Budget
from sessionlog.analytics.conditions import KEYS
from sessionlog.cli import guard
from sessionlog.logger.event_writer import EventWriter
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.testing import FixedClock

NOON = "2026-11-20T12:00:00Z"
NOW = ("--now", NOON, "--tz", "UTC")
CONFIG = '[budgets.all]\nusd = 5\nwindow = "3650d"\n'
NATIVE, TYPED = ("idle", "tool-only", "cut-off", "of-a-command", "unanswered"), "typed-only"
NOTE = "6 sessions without a response are not counted: `sessionlog sessions` lists them"
EVENT = {
    "session_id": "s",
    "cwd": "/",
    "hook_event_name": "PreToolUse",
    "tool_name": "Bash",
    "tool_input": {"command": "ls"},
}


@pytest.fixture
def folder(home, record):
    """The folder of our own logs, with two sessions that were answered, one of them with success."""
    folder = home / ".local/state/sessionlog/sessions"
    record(folder, "s-paid", cost=0.5)
    record(folder, "s-failed", cost=0.25, status="error")
    return folder


@pytest.fixture
def add(home, folder):
    """Add sessions without a response: five of ours, and one of Claude Code with nothing but a prompt."""

    def write():
        for name in NATIVE:
            log = SessionLogger(folder, name, clock=FixedClock("2026-11-20T11:00:00Z"), prompt="x", work_dir="/src/api")
            log.emit("session.start", {"resolved_harness": "true", "wire": ""} if name == "of-a-command" else {})
            if name == "tool-only":
                log.tool_call("bash", {"command": "ls"}, output="x")
            if name == "unanswered":
                log.llm_request("hello")
            if name != "cut-off":
                log.end()
            EventWriter.close(log)
        claude = home / ".claude" / "projects" / "-src-api" / f"{TYPED}.jsonl"
        claude.parent.mkdir(parents=True)
        row = {
            "type": "user", "uuid": "u1", "parentUuid": None, "sessionId": TYPED, "timestamp": "2026-11-20T11:00:00Z",
            "cwd": "/src/api", "message": {"role": "user", "content": "hello"},
        }  # fmt: skip
        claude.write_text(json.dumps(row) + "\n", "utf-8")

    return write


REPORTS = {
    **{f"usage by {key}": ("usage", "--by", key, "--json") for key in KEYS},
    "usage as CSV": ("usage", "--csv", *NOW),
    "usage from an up-to-date ledger": ("usage", "--json"),
    "usage of a day": ("usage", "--since", "2026-11-20", "--json"),
    "usage read anew": ("usage", "--no-ledger", "--json"),
    "models": ("models", "--json"),
    "blocks": ("blocks", "--source", "*", "--json"),
    "budgets": ("budget", "--json", *NOW),
    "status of all": ("status", "--all", "--json", *NOW),
    "the view of responses": ("sql", "--json", "SELECT * FROM usage ORDER BY time, session"),
    "the view of sessions that count": ("sql", "--json", "SELECT * FROM sessions WHERE counted ORDER BY session"),
}


@pytest.mark.parametrize("words", REPORTS.values(), ids=REPORTS)
def test_no_number_changes(cli, config, add, words):
    """Not one by any key, in any form, from the ledger or without it."""
    config(CONFIG)
    before = cli(*words)
    add()
    after = cli(*words)
    assert (after.code, after.out) == (before.code, before.out)
    assert before.code == 0


def test_places_have_the_same_usage(cli, folder, add, tmp_path):
    """What a machine exports is what its own report has."""
    add()
    assert cli("export", tmp_path / "place", "--parquet").code == 0
    here, place = cli("usage", "--json").json, cli("usage", tmp_path / "place", "--json").json
    assert (place["rows"], place["totals"]) == (here["rows"], here["totals"])
    assert [row["calls"] for row in cli("tools", tmp_path / "place", "--json").json["rows"]] == [1]


def test_sessions_lists_them(cli, folder, add):
    """With no request, no cost, and no cost that is unknown."""
    add()
    rows = {row["session"]: row for row in cli("sessions", "--json", *NOW).json["rows"] if not row["counted"]}
    assert set(rows) == {*NATIVE, TYPED}
    for row in rows.values():
        assert (row["requests"], row["cost_usd"], row["cost_is_partial"]) == (0, None, False)
    assert rows["of-a-command"]["harness"] == "true"
    assert "no end: killed?" in cli("sessions", *NOW, "--wide").out


def test_usage_names_how_many_there_are(cli, folder, add):
    """Below the table of those that count; of one in the singular; of a time or a filter without any not at all."""
    add()
    for words in ((), ("--by", "day"), ("--since", "2026-11-20"), ("--project", "/src/*")):
        ran = cli("usage", *words, *NOW)
        assert NOTE in " ".join((ran.out + ran.err).split()), words
    one = cli("usage", "--source", "claude-code", *NOW)
    assert "1 session without a response is not counted: `sessionlog sessions` lists it" in one.err
    assert "0 sessions" in one.out
    for words in (("--since", "2026-11-21"), ("--provider", "acme"), ("--status", "error")):
        ran = cli("usage", *words, *NOW)
        assert "without a response" not in ran.out + ran.err, words


def test_its_tool_calls_count(cli, folder, add):
    """They were made, whoever asked for them."""
    add()
    [row] = cli("tools", "--json").json["rows"]
    assert (row["tool"], row["calls"]) == ("bash", 1)


def test_budgets_stay_known(cli, config, add, monkeypatch):
    """The command, the Python class, the hook of an agent, and what is left all know that nothing was sent."""
    config(CONFIG)
    add()
    assert cli("budget", "check", *NOW).code == 0
    [row] = cli("budget", "--json", *NOW).json["rows"]
    assert (row["used"], row["unknown"], row["unpriced_requests"]) == (0.75, [], 0)
    assert cli("status", "--json", *NOW).json["usage"]["budgets"]["all"]["left"] == pytest.approx(4.25)
    budget = Budget(usd=5, window="3650d")
    assert budget.remaining().amount == pytest.approx(4.25)
    assert budget.allows(0.1)
    monkeypatch.setattr(guard, "_SECONDS", 60.0)  # its end would be that of this process
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(EVENT).encode())))
    assert cli("guard", "claude-code", "--strict") == (0, "", "")


def test_the_loggers_sessions_without_a_request_are_such(cli, folder):
    """A `with` around nothing, or around a tool, as its user writes it; a request that failed counts."""
    with SessionLogger(prompt="x"):
        pass
    with SessionLogger() as log:
        log.tool_call("bash", {}, output="x")
    with SessionLogger(provider="acme", model="m") as log:
        log.llm_request("hello")
        log.llm_response(error="429")
    totals = cli("usage", "--json").json["totals"]
    assert (totals["sessions"], totals["failed_requests"], totals["unknown_cost_sessions"]) == (3, 1, 0)
