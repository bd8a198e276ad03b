"""The end of a replay has the numbers of `usage`, `sessions` and `status`, whichever log of a session is shown."""

import json
import os
import re
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sessionlog.analytics.session_totals import session_totals
from sessionlog.analytics.sessions import list_sessions
from sessionlog.analytics.status.logs import ask_status
from sessionlog.analytics.status.question import StatusQuestion
from sessionlog.analytics.usage import aggregate_usage
from sessionlog.cli.app import build_app
from sessionlog.errors import LogNotReadable
from sessionlog.places import session_directory
from sessionlog.render.replay.lines import View
from sessionlog.sources.discover import discover, find_logs
from sessionlog.sources.protocol import Log
from sessionlog.sources.registry import all_sources
from tests.agreement import footer_numbers, numbers_of, replayed
from tests.sources.homes import all_cases, build_home, environment
from tests.turns import agent_of, by_turns

DATA = Path(__file__).parents[2] / "testdata"
TOGETHER = sorted(str(path) for path in (DATA / "together").iterdir())
SAMPLES = sorted(str(path.relative_to(DATA)) for path in DATA.rglob("*.jsonl") if "home" not in path.parts)
TOLD_APART = ("claude-code/fork-copies", "claude-code/sub-agents", "codex/branch-copy", "codex/sub-agents")
"""One log of a session does not have its numbers: always quick."""
NOT_SHOWN = {"claude-code/file-named-otherwise", "crush/hostile"}
"""A log that has another name than its session, by which it is not found; a session that has costs and no events."""


def build(case, folder):
    """The environment of a home, and the path of its ledger."""
    home = build_home(case, folder)
    return {"SESSIONLOG_DIR": f"{folder}/none", **environment(case, home)}, f"{folder}/ledger.sqlite"


@pytest.mark.parametrize(
    "case",
    [
        *TOLD_APART,
        *by_turns([case for case in all_cases() if case not in TOLD_APART], 16, group=agent_of),
        *by_turns(TOGETHER, 2),
    ],
)
def test_a_replay_ends_with_the_numbers_of_reports(case, tmp_path):
    """By id, by the path of each log in the agent's folder, and by that of each log elsewhere, which is read alone."""
    env, ledger = build(case, tmp_path)
    listed = {(one.source, one.session): one for one in list_sessions(env=env, ledger=ledger).rows}
    used = aggregate_usage(env=env, ledger=ledger, by=["source", "session"]).rows
    sums = {(row.keys["source"], row.keys["session"]): (row.requests, row.total_tokens) for row in used}
    for key, one in listed.items():
        assert sums.get(key, (0, 0)) == (one.requests, one.total_tokens), key
        if case not in NOT_SHOWN:
            assert replayed(one.session, env, ledger) == numbers_of(one), key
    for log in discover(env, all_sources()):
        if isinstance(log, Log):
            names = list(log.source.name_sessions(log.path))
            one = listed.get((log.source.id, names[0] if names else ""))
            _check_path(log, one, len(names) > 1, env, ledger, tmp_path)


def _check_path(log, one, has_several, env, ledger, folder):
    if one is not None:
        assert replayed(log.path, env, ledger) == numbers_of(one), log.path
    if has_several:
        return
    shown = replayed(log.path, env, ledger)
    try:
        status, _ = ask_status(StatusQuestion(target=log.path), env=env, ledger=ledger)
    except LogNotReadable:
        return  # no report knows a session in it
    assert (shown["requests"], shown["input_tokens"]) == _of_status(status), log.path
    elsewhere = {"HOME": f"{folder}/nobody"}
    alone = list_sessions([log.path], env=elsewhere).rows
    assert replayed(log.path, elsewhere, f"{folder}/other.sqlite") == (
        numbers_of(alone[0]) if alone else dict.fromkeys(shown, 0) | {"cost": None}
    ), log.path


def _of_status(status):
    used = status.usage["session"]
    return used["requests"], used["input"]


@pytest.mark.parametrize("sample", by_turns(SAMPLES, 16))
def test_a_sample_ends_with_the_numbers_of_reports(sample, tmp_path):
    """Read where it is, and in the folder of our own sessions by its id."""
    [log] = find_logs([str(DATA / sample)], {})
    rows = list_sessions([log.path], env={}).rows
    env = {"HOME": str(tmp_path), "SESSIONLOG_DIR": str(tmp_path / "sessions")}
    if len(rows) == 1:
        assert replayed(log.path, env, str(tmp_path / "ledger.sqlite")) == numbers_of(rows[0])
    if len(rows) == 1 and log.source.id in ("native", "fizeau"):
        (tmp_path / "sessions").mkdir()
        shutil.copy(log.path, tmp_path / "sessions")
        assert replayed(rows[0].session, env, str(tmp_path / "ledger.sqlite")) == numbers_of(rows[0])


BRANCH = "019a0000-0002-7000-8000-000000000002"
"""It has copied two responses; one request is its own."""


@pytest.fixture
def branch(tmp_path, monkeypatch):
    """A home with a branch, which is where commands look."""
    env, ledger = build("codex/branch-copy", tmp_path)
    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {**env, "SESSIONLOG_LEDGER": ledger}.items():
        monkeypatch.setenv(name, value)
    return next(one for one in list_sessions(env=env, ledger=ledger).rows if one.session == BRANCH)


def words_of(page):
    """The words of a page."""
    return re.sub(r"<[^>]*>", "", page)


@pytest.mark.parametrize("options", [["--plain"], ["--no-pager"], ["--markdown"], ["--html", "-"]])
def test_every_form_has_the_totals(branch, options):
    """Text, document and page; a page has them above, too."""
    assert branch.requests == 1
    result = CliRunner().invoke(build_app(("replay",)), ["replay", BRANCH, *options])
    shown = re.findall(r"(\d+) requests?\b", words_of(result.stdout))
    assert shown == ["1"] * (2 if "--html" in options else 1)


def test_the_pages_of_a_report_have_the_totals(branch, tmp_path):
    """Those of the whole session, whatever time the report is about."""
    sessions = Path(session_directory(os.environ))
    sessions.mkdir(parents=True, exist_ok=True)
    with (sessions / "long.jsonl").open("w") as log:
        for day in (10, 12, 12):
            data = {"content": "x", "model": "gpt-5", "usage": {"input": 5, "output": 1}}
            row = {
                "session_id": "long",
                "seq": day,
                "type": "llm.response",
                "ts": f"2026-11-{day}T10:00:00Z",
                "data": data,
            }
            log.write(json.dumps(row) + "\n")
    page, folder = str(tmp_path / "usage.html"), tmp_path / "pages"
    for since, sums in (("2026-11-01..", {BRANCH: "1", "long": "3"}), ("2026-11-11..", {"long": "3"})):
        arguments = ["report", "--html", page, "--pages", str(folder), "--since", since]
        assert CliRunner().invoke(build_app(("report",)), arguments).exit_code == 0
        for session, count in sums.items():
            text = words_of((folder / f"{session}.html").read_text("utf-8"))
            assert re.findall(r"(\d+) requests?\b", text) == [count, count]


def test_the_terminal_application_has_the_totals(branch):
    """At the end of a conversation."""
    from sessionlog.cli.reporting import report_context
    from sessionlog.cli.ui import LedgerQueries

    with LedgerQueries(report_context(None)).conversation(branch, 80) as lines:
        text = " ".join("".join(span.text for span in line) for block in lines for line in block)
    assert re.findall(r"(\d+) requests?\b", text) == ["1"]


def test_a_first_replay_makes_the_ledger(branch):
    """As any report does: the other logs of the session, and those that it has copied from, decide its numbers."""
    os.remove(os.environ["SESSIONLOG_LEDGER"])
    assert replayed(BRANCH, dict(os.environ), os.environ["SESSIONLOG_LEDGER"]) == numbers_of(branch)
    assert os.path.exists(os.environ["SESSIONLOG_LEDGER"])


def test_prices_of_ones_own_price_the_totals(branch, tmp_path):
    """As they price the responses above them, and the session in reports."""
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"gpt-5*": {"input": 1000, "output": 1000, "cache_read": 1000}}))
    found = run_json("sessions", "--prices", str(prices))["rows"]
    cost = next(row["cost_usd"] for row in found if row["session"] == BRANCH)
    assert cost > 0.1 > branch.estimated_nano / 1e9
    for _ in range(2):  # also from an up-to-date ledger
        result = CliRunner().invoke(build_app(("replay",)), ["replay", BRANCH, "--plain", "--prices", str(prices)])
        assert footer_numbers(result.stdout.rpartition("━━ success")[2])["cost"] == ("~", round(cost * 1e9), False)


def run_json(*words):
    """The document of a command."""
    return json.loads(CliRunner().invoke(build_app((words[0],)), [*words, "--json"]).stdout)


def test_a_session_that_the_ledger_does_not_have_gets_no_other_ones_totals(tmp_path):
    """One file may hold many sessions."""
    env, ledger = build("opencode/fork", tmp_path)
    log = next(log for log in discover(env, all_sources()) if len(list(log.source.name_sessions(log.path))) > 1)
    for name in log.source.name_sessions(log.path):
        assert session_totals(log, name, env=env, ledger=ledger).session == name
    assert session_totals(log, "another", env=env, ledger=ledger) is None


@pytest.mark.parametrize("options", [["--plain"], ["--no-pager"], ["--html", "-"]])
def test_the_reading_of_all_logs_is_shown(branch, monkeypatch, options):
    """It may take minutes where there is no ledger yet."""
    os.remove(os.environ["SESSIONLOG_LEDGER"])
    seen = []
    monkeypatch.setattr("sessionlog.cli.replay.scan_progress", lambda: nullcontext(lambda *done: seen.append(done)))
    assert CliRunner().invoke(build_app(("replay",)), ["replay", branch.path, *options]).exit_code == 0
    assert seen


def test_a_pager_is_not_disturbed(branch, monkeypatch, capfd):
    """It has the screen: there a bar would stand between its lines."""
    os.remove(os.environ["SESSIONLOG_LEDGER"])
    monkeypatch.setattr("sessionlog.cli.replay.scan_progress", lambda: pytest.fail("a bar"))
    monkeypatch.setattr("sessionlog.cli.replay._view", lambda *_, **__: (View(width=80, exact=False), None))
    monkeypatch.setenv("PAGER", "cat")
    assert CliRunner().invoke(build_app(("replay",)), ["replay", branch.path]).exit_code == 0
    assert "1 request" in capfd.readouterr().out


def test_a_log_of_the_archive_has_the_totals_of_the_deleted_one(branch):
    """It is read from another place, and the ledger knows the one where it was."""
    assert CliRunner().invoke(build_app(("archive",)), ["archive", "--older-than", "1d"]).exit_code == 0
    shutil.rmtree(Path(os.environ["HOME"]) / ".codex")
    result = CliRunner().invoke(build_app(("replay",)), ["replay", BRANCH, "--plain"])
    assert "from the archive" in result.stderr or "archive" in result.stderr
    assert re.findall(r"(\d+) requests?\b", result.stdout) == ["1"]


def test_a_followed_log_ends_with_the_totals(tmp_path):
    """As one that is read once; the end is shown as soon as nothing follows it."""
    env, ledger = {"HOME": str(tmp_path)}, str(tmp_path / "ledger.sqlite")
    log = shutil.copy(DATA / "replay" / "story.jsonl", tmp_path)
    assert replayed(log, env, ledger, "--follow") == numbers_of(list_sessions([log], env={}).rows[0])
