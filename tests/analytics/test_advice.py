"""Advice: findings added up over sessions, in a window and in the time before it."""

import json
from datetime import UTC, datetime

import pytest

from sessionlog.analytics.advice import ADVICE, MISS_ADVICE, report_advice
from sessionlog.cli import main
from sessionlog.context import findings
from sessionlog.errors import InvalidQuery
from sessionlog.render.report import View, render_table
from tests.context.test_findings import READ, READER, SERVER, USED, WRITE, Run, read
from tests.ledger.entries import PRICES

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
TOKENS = findings.count_tokens(read()[2], "m")
COST = TOKENS * (WRITE + READ)


@pytest.fixture
def made(tmp_path):
    """Make sessions: each reads a file twice, and then asks twice more."""

    def session(name, hour, *calls, **more):
        run = Run(tmp_path)
        run.path = tmp_path / "logs" / f"{name}.jsonl"
        run.path.parent.mkdir(exist_ok=True)
        run._time = lambda: _tick(run, hour)
        run.items[0]["ts"] = f"2026-11-20T{hour:02}:00:00Z"
        run.ask(*(calls or [read()]), **more)
        run.ask(*(calls or [read()]))
        run.ask()
        run.ask()
        run.found("loop")  # writes it

    session.folder = tmp_path / "logs"
    return session


def _tick(run, hour):
    run.clock += 1
    return f"{hour:02}:{run.clock // 60:02}:{run.clock % 60:02}"


def report(made, **options):
    """The report on the sessions made."""
    return report_advice(made.folder, prices=PRICES, now=NOW, env={"HOME": str(made.folder)}, **options)


def test_findings_of_sessions_add_up(made):
    """By kind and subject, with the share of all cost, and the places of the costliest."""
    made("one", 9)
    made("two", 10)
    [row] = report(made).rows
    assert row.keys == {"kind": "repeated_result", "subject": "api/app.py"}
    assert (row.sessions, row.count, row.tokens) == (2, 2, 4 * TOKENS)
    assert (row.known_nano, row.estimated_nano) == (None, 2 * COST)
    assert row.share == 2 * COST / (8 * USED)
    assert row.evidence == ("one#3", "two#3")
    assert row.command == "sessionlog replay one"
    assert (row.before_count, row.before_cost_usd) == (None, None)


def test_sessions_without_findings_are_said_to_have_none(made):
    """That is no lack of sessions."""
    made("a", 10, read(output="short"))
    found = report(made)
    assert (found.is_empty, "nothing in 1 session was paid for without need" in found.why_empty) == (True, True)
    assert report(made, filters={"project": ["elsewhere"]}).why_empty == ""


def test_the_time_before_stands_beside(made):
    """Of the same length; what has gone since then is listed last, with a cost of nothing now."""
    made("old", 9, read("/src/api/gone.py"))
    made("older", 9)
    made("new", 11)
    found = report(made, since="2026-11-20T10:00:00Z..2026-11-20T12:00:00Z")
    rows = {row.keys["subject"]: row for row in found.rows}
    assert list(rows) == ["api/app.py", "api/gone.py"]
    assert (rows["api/app.py"].count, rows["api/app.py"].before_count) == (1, 1)
    assert (rows["api/gone.py"].count, rows["api/gone.py"].cost_usd) == (0, 0)
    assert rows["api/gone.py"].before_cost_usd == COST / 1e9
    assert rows["api/gone.py"].before_share == COST / (8 * USED)
    assert rows["api/app.py"].share == COST / (4 * USED)
    assert (found.sessions_read, found.before_sessions_read, found.read_nano) == (1, 2, 4 * USED)


def test_the_heading_is_of_one_time_and_estimates_are_marked(made):
    """What only the time before has is in the table, below; a cost by list prices has its mark everywhere."""
    made("old", 9, read("/src/api/gone.py"))
    made("older", 9)
    made("new", 11)
    window = "2026-11-20T10:00:00Z..2026-11-20T12:00:00Z"
    found = report(made, since=window)
    lines = [line.plain for line in render_table(found, View(tz="UTC", now=NOW, width=160))]
    assert f" · 1 finding in 1 session, ~${4 * USED / 1e9:,.2f}" in lines[0]
    [row] = [line for line in lines if "api/app.py" in line]
    assert row.count("~$") == 2
    assert any(line.startswith("~ estimated from") for line in lines)
    left_out = f"1 session of ~${4 * USED / 1e9:,.2f} not read: --limit-sessions reads more"
    assert left_out in report(made, since=window, sessions=2).footnotes()


def test_a_mark_of_the_time_before_is_explained(made):
    """Also where nothing in the window is estimated."""
    made("old", 9)
    found = report(made, since="2026-11-20T10:00:00Z..2026-11-20T12:00:00Z")
    assert found.summary == "0 findings in 0 sessions"
    assert any(line.startswith("~ estimated from") for line in found.footnotes())


def test_a_tool_that_any_session_calls_is_used(made):
    """The others' definitions are no finding then."""
    made("sends", 9, read("/src/api/other.py"), tools=[SERVER, READER])
    made("calls", 10, ("mcp__files__read", {"path": "a"}, "short"), tools=[READER])
    kinds = [(row.keys["kind"], row.keys["subject"]) for row in report(made).rows]
    assert ("unused_tools", "mcp jira") in kinds
    assert ("unused_tools", "mcp files") not in kinds


def test_a_limit_reads_the_costliest_sessions_and_names_the_rest(made):
    """The rest's cost is in the JSON and below the table."""
    made("one", 9)
    made("two", 10, usage={"input": 1_000_000, "output": 5, "cache_read": 900, "cache_write": 100})
    found = report(made, sessions=1)
    assert (found.sessions_read, found.sessions_left_out) == (1, 1)
    assert found.extra["cost_left_out_usd"] == pytest.approx(4 * USED / 1e9)
    assert [row.evidence for row in found.rows] == [("two#3",)]
    assert any("--limit-sessions" in note for note in found.footnotes())


def test_processes_find_the_same(made):
    """Two workers, or this process alone."""
    for number in range(4):
        made(f"s{number}", 9)
    assert report(made, jobs=2).rows == report(made, jobs=1).rows


def test_a_log_that_is_gone_is_named(made, tmp_path):
    """The ledger remembers its cost; its findings went with the log."""
    made("one", 9)
    options = {"prices": None, "now": NOW, "ledger": str(tmp_path / "ledger.sqlite")}
    env = {"HOME": str(tmp_path / "home"), "SESSIONLOG_DIR": str(made.folder)}
    assert report_advice(env=env, **options).sessions_read == 1
    (made.folder / "one.jsonl").unlink()
    found = report_advice(env=env, **options)
    assert (found.rows, found.notes) == ((), ("1 session without a log: not read",))
    assert (found.sessions_read, found.read_nano) == (0, 0)


def test_every_kind_and_cause_has_its_advice():
    """A new one needs a sentence."""
    kinds = set(findings.Kind.__args__)
    assert set(ADVICE) == kinds - {"cache_miss"}
    assert set(MISS_ADVICE) == set(findings._CAUSES.values())


def test_findings_have_no_other_groups(made):
    """The call is refused before anything is read."""
    with pytest.raises(InvalidQuery):
        report(made, by=["model"])


def test_a_command_quotes_what_the_log_names(made):
    """A session's name cannot become another command of the shell."""
    made("a b;c", 9)
    [row] = report(made).rows
    assert row.command == "sessionlog replay 'a b;c'"


@pytest.fixture
def resumed(tmp_path):
    """A session and its continuation: Claude Code up to 2.0.14 copied rows into the resumed session's log, with new times and without request ids."""
    folder = tmp_path / ".claude" / "projects" / "p"
    folder.mkdir(parents=True)
    usages = [(0, 6000), (1000, 6000), (2000, 6000)]  # read from the cache, and written to it

    def rows(session, hour, count, *, copied):
        for number, (cached, written) in enumerate(usages[:count]):
            usage = {
                "input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": cached,
                "cache_creation_input_tokens": written,
            }  # fmt: skip
            message = {
                "id": f"msg_{number}", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
                "content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn", "usage": usage,
            }  # fmt: skip
            time = f"2026-11-20T{hour:02}:00:{number:02}.000Z"
            row = {"sessionId": session, "version": "1.0.9", "cwd": "/w", "timestamp": time, "isSidechain": False}
            asked = {"role": "user", "content": f"prompt {number}"}
            yield row | {"type": "user", "uuid": f"{session}{number}u", "message": asked}
            own = {} if number < copied else {"requestId": f"req_{number}"}
            yield row | {"type": "assistant", "uuid": f"{session}{number}a", "message": message} | own

    for session, hour, count, copied in (("first", 9, 2, 0), ("second", 10, 3, 2)):
        lines = [json.dumps(row) for row in rows(session, hour, count, copied=copied)]
        (folder / f"{session}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    return folder


def test_what_a_resumed_session_copied_counts_once(resumed, tmp_path):
    """In the session that paid for it."""
    found = report_advice(env={"HOME": str(tmp_path)}, now=NOW)
    [row] = found.rows
    assert (row.keys["kind"], row.count, row.tokens) == ("cache_miss", 2, 5000 + 5000)
    assert set(row.evidence) == {"first#2", "second#3"}


@pytest.mark.parametrize(("session", "requests"), [("first", [2]), ("second", [3])])
def test_cache_misses_of_a_resumed_session_are_its_own(resumed, capsys, session, requests):
    """`context --cache` reads one log, and looks for the originals of copies in the logs beside it."""
    assert main(["context", str(resumed / f"{session}.jsonl"), "--cache", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [miss["request"] for miss in found["misses"]] == requests
    assert found["missed_tokens"] == 5000


@pytest.mark.parametrize("spelled", ["second.jsonl", "./second.jsonl", ".//second.jsonl", "../{folder}//second.jsonl"])
def test_cache_misses_do_not_depend_on_how_a_path_is_spelled(resumed, capsys, monkeypatch, spelled):
    """The logs beside it are found from every spelling."""
    monkeypatch.chdir(resumed)
    assert main(["context", spelled.format(folder=resumed.name), "--cache", "--json"]) == 0
    assert [miss["request"] for miss in json.loads(capsys.readouterr().out)["misses"]] == [3]
