"""The cached path gives the full path's answer to the byte, imports next to nothing, and declines what it cannot do."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from sessionlog.cli import cached_path, fast_path
from sessionlog.cli.options import COMMANDS, settings_of
from sessionlog.sources.names import OURS

LONG_AGO = 1_700_000_000
ALLOWED = {
    "sessionlog", "sessionlog._version", "sessionlog.lazy_imports",
    "sessionlog.analytics", "sessionlog.analytics.columns", "sessionlog.analytics.conditions",
    "sessionlog.analytics.row_order", "sessionlog.analytics.sums", "sessionlog.analytics.usage_columns",
    "sessionlog.analytics.usage_sums",
    "sessionlog.cli", "sessionlog.cli.fast_path", "sessionlog.cli.options", "sessionlog.cli.output", "sessionlog.cli.cached_path",
    "sessionlog.ledger", "sessionlog.ledger.quarter_hours", "sessionlog.ledger.histogram", "sessionlog.ledger.identity",
    "sessionlog.ledger.schema", "sessionlog.ledger.cached", "sessionlog.ledger.freshness", "sessionlog.ledger.trust", "sessionlog.places",
}  # fmt: skip
"""All of our modules that a cached report may load; each costs 0.1 ms."""


def settle(folder):
    """Nothing in a folder was changed a moment ago."""
    for place, _, names in os.walk(folder):
        for path in (place, *(os.path.join(place, name) for name in names)):
            os.utime(path, (LONG_AGO, LONG_AGO))


@pytest.fixture
def sessions(home, record):
    """The folder of our own logs, with four sessions of which nothing is new."""
    folder = home / ".local/state/sessionlog/sessions"
    record(folder, "s-first", start="2026-11-19T23:30:00Z")
    record(folder, "s-failed", status="error", model="gpt-5.3-codex", provider="openai", cost=0.25)
    record(folder, "s-free", status=None, model="qwen3.6-27b", provider="vllm", start="2026-11-21T11:55:00Z")
    record(folder, "s-odd", model='m"é\x7f', provider="p\\\n", work_dir="/src/café")
    settle(home / ".local/state")
    return folder


def both(cli, monkeypatch, *words):
    """What both ways leave behind."""
    short = cli("usage", "--json", *words)
    with monkeypatch.context() as patch:
        patch.setattr(cached_path, "answer", lambda *_: False)
        return short, cli("usage", "--json", *words)


ANSWERED = [
    [], ["--wide"], ["--by", "model"], ["--by", "provider, model,"], ["--by", ","], ["--by", "project,status"],
    ["--by", "session,source,branch,agent,version,route,harness,response_model"], ["--provider", "OPEN*"],
    ["--model", "gpt*", "--model", "claude*"], ["--project", "/src/caf*"], ["--status", "success"],
    ["--sort", "cost_usd"], ["--sort=-cost_usd"], ["--sort", "model"], ["--sort=-provider"], ["--limit", "9"],
    ["--limit", "1"], ["--limit", "0"], ["--limit", "2", "--sort", "input_tokens", "--by", "session"],
]  # fmt: skip


@pytest.mark.parametrize("words", ANSWERED, ids=" ".join)
def test_the_answer_is_that_of_the_full_path(warmed, cli, monkeypatch, taken, words):
    """Stdout, stderr and exit code."""
    short, whole = both(cli, monkeypatch, *words)
    assert taken == [True]
    assert short == whole
    assert short.code == 0


DECLINED = [
    ["--since", "2026-11-01.."], ["--until", "2026-12-01"], ["--by", "day"], ["--by", "meta.x"], ["--by", "nonsense"],
    ["--by", "model,model"], ["--sort", "nonsense"], ["--source", "native"], ["--tz", "UTC"], ["--tz", "nowhere"],
    ["--now", "2026-11-21T12:00:00Z"], ["--no-ledger"], ["--live"], ["--strict"], ["--jobs", "1"], ["--heatmap", "--since", "2026-11-01.."],
    ["--engine", "ray"], ["--master", "local[2]"], ["--merge-worktrees"], ["--prices", "none.toml"], ["--model", "none"], ["."],
]  # fmt: skip


@pytest.mark.parametrize("words", DECLINED, ids=" ".join)
def test_what_it_cannot_do_it_declines(warmed, cli, monkeypatch, taken, words):
    """Then the full path answers, or names the mistake."""
    short, whole = both(cli, monkeypatch, *words)
    assert taken == [False]
    assert short == whole


def test_every_setting_is_known_to_one_of_the_two_lists():
    """A new option has to be thought of."""
    options = {option.name: option.setting for option in COMMANDS["usage"]}
    tried = {options[word.partition("=")[0]] for words in [*ANSWERED, *DECLINED] for word in words if word[:2] == "--"}
    assert tried == {*options.values()} - {"paths", "ledger", "as_json", "as_csv", "as_markdown"}


def test_only_json_has_a_cached_path(warmed, taken, cli):
    """Tables, CSV and Markdown take the full path."""
    for words in ([], ["--csv"], ["--markdown"]):
        cli("usage", *words)
    assert taken == [False, False, False]


def test_another_ledger_is_asked(warmed, cli, monkeypatch, taken, tmp_path):
    """`--ledger` and `$SESSIONLOG_LEDGER` name it; it is not made by the cached path."""
    path = tmp_path / "book.sqlite"
    first = cli("usage", "--json", "--ledger", path)
    short, whole = both(cli, monkeypatch, "--ledger", path)
    assert taken == [False, True]
    assert first == short == whole
    monkeypatch.setenv("SESSIONLOG_LEDGER", str(path))
    assert cli("usage", "--json") == whole
    assert taken == [False, True, True]


def test_a_session_of_the_archive_is_said(warmed, cli, monkeypatch, taken, home):
    """The same note stands on stderr."""
    (warmed / "s-first.jsonl").unlink()
    settle(home / ".local/state")
    cli("usage")
    taken.clear()
    short, whole = both(cli, monkeypatch)
    assert taken == [True]
    assert short == whole
    assert "1 session here is only remembered: its log is gone" in short.err


def _new_log(sessions, record):
    record(sessions, "s-new")


def _grown_log(sessions, record):
    with open(sessions / "s-free.jsonl", "ab") as log:
        log.write(b"\n")


def _lost_log(sessions, record):
    (sessions / "s-free.jsonl").unlink()


def _config(sessions, record):
    path = sessions.parents[3] / ".config/sessionlog/config.toml"
    path.parent.mkdir(parents=True)
    path.write_text('timezone = "UTC"')


def _open_ledger(sessions, record):
    os.chmod(sessions.parents[3] / ".local/share/sessionlog/ledger.sqlite", 0o666)


def _broken_ledger(sessions, record):
    (sessions.parents[3] / ".local/share/sessionlog/ledger.sqlite").write_bytes(b"nothing of the kind" * 400)


def _no_ledger(sessions, record):
    (sessions.parents[3] / ".local/share/sessionlog/ledger.sqlite").unlink()


@pytest.mark.parametrize(
    "change", [_new_log, _lost_log, _config, _open_ledger, _broken_ledger, _no_ledger],
    ids=lambda change: change.__name__,
)  # fmt: skip
def test_after_a_change_the_full_path_is_gone(warmed, cli, monkeypatch, taken, record, change):
    """Nothing that is older than the logs is shown."""
    change(warmed, record)
    short, whole = both(cli, monkeypatch)
    assert taken == [False]
    assert short.out == whole.out


@pytest.mark.parametrize("variable", ["SESSIONLOG_DIR", "CLAUDE_CONFIG_DIR", "SESSIONLOG_TZ"])
def test_another_environment_is_another_question(warmed, cli, monkeypatch, taken, tmp_path, variable):
    """Agents write elsewhere, or days are somebody else's."""
    monkeypatch.setenv(variable, "UTC" if variable.endswith("TZ") else str(tmp_path / "elsewhere"))
    cli("usage", "--json")
    assert taken == [False]


def test_prices_of_ones_own_are_not_taken_for_the_list(warmed, cli, config, taken, monkeypatch):
    """What they estimated is estimated anew when they are gone."""
    before = cli("usage", "--json")
    path = config('[prices."vllm/*"]\ninput = 1\noutput = 2\n')
    own = cli("usage", "--json")
    path.unlink()
    again, warmest = cli("usage", "--json"), cli("usage", "--json")
    assert taken == [True, False, False, True]
    assert own != before == again == warmest


def test_a_log_that_has_grown_is_read_first(warmed, cli, monkeypatch, taken, record):
    """While an agent is working that is the usual case."""
    before = cli("usage", "--json")
    _grown_log(warmed, record)
    with open(warmed / "s-first.jsonl", "ab") as log:
        log.write(_ANSWER)
    short, whole = both(cli, monkeypatch)
    assert taken == [True, True]
    assert short == whole != before


_ANSWER = b'{"session_id":"s-first","seq":90,"type":"llm.response","ts":"2026-11-20T10:00:00Z","data":{"usage":{"input":7}}}\n'


def test_damage_is_named(sessions, home, cli, monkeypatch, taken):
    """As the full path names it."""
    with open(sessions / "s-first.jsonl", "ab") as log:
        log.write(b'{"no json\n')
    settle(home / ".local/state")
    cli("usage")
    taken.clear()
    short, whole = both(cli, monkeypatch)
    assert taken == [True]
    assert short == whole
    assert "s-first.jsonl" in short.err


def test_a_cached_report_imports_next_to_nothing(warmed):
    """In a fresh interpreter: of our own modules only what it needs."""
    code = (
        "import io, sys, _sqlite3; bare = set(sys.modules); from sessionlog.cli import main; "
        "code = main(sys.argv[1:]); print(*set(sys.modules) - bare, file=sys.stderr); sys.exit(code)"
    )
    command = [sys.executable, "-c", code, "usage", "--json", "--by", "provider", "--limit", "9", "--model", "*"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ})
    assert '"sessionlog.usage/1"' in ran.stdout
    assert {name for name in ran.stderr.split() if name.startswith("sessionlog")} <= ALLOWED


HEAVY = {
    "typer",
    "pydantic",
    "rich",
    "dateutil",
    "orjson",
    "asyncio",
    "concurrent",
    "multiprocessing",
    "importlib.metadata",
}

SLOW = {"msgspec"}
"""It takes 30 ms to import."""


@pytest.mark.parametrize(
    "words",
    [
        ["sessions"], ["blocks"], ["usage", "--by", "day"], ["usage", "--since", "7d"], ["budget"], ["ledger"], ["calendar"],
        ["models"], ["sources"], ["pricing", "claude-opus-4-5"], ["tools"], ["sql", "SELECT 1"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_json_without_news_needs_little(warmed, cli, config, monkeypatch, home, words):
    """Neither what compiles classes and patterns, nor what zones, settings and texts need."""
    monkeypatch.setenv("TZ", "UTC")
    if words == ["budget"]:
        config('[budgets.daily]\nusd = 20\nperiod = "day"\n[budgets.weekly]\ntokens = 1_000\nwindow = "7d"\n')
    with closing(sqlite3.connect(home / ".local/share/sessionlog/ledger.sqlite")) as ledger, ledger:
        ledger.execute("INSERT INTO limits SELECT id, 'native', 'primary', 1, 5, 300, NULL, '' FROM files LIMIT 1")
    cli(*words)  # the first query of a budget writes its seal
    code = (
        "import sys; bare = set(sys.modules); from sessionlog.cli import main; "
        "code = main(sys.argv[1:]); print(*set(sys.modules) - bare, file=sys.stderr); sys.exit(code)"
    )
    ran = subprocess.run([sys.executable, "-c", code, *words, "--json"], capture_output=True, text=True, check=True)
    loaded = set(ran.stderr.split())
    assert "sessionlog.cli.reporting" in loaded
    assert (SLOW | HEAVY | {"zoneinfo"}) & loaded == set()


@pytest.mark.parametrize(
    "words",
    [
        [], ["--wide"], ["--csv"], ["--markdown"], ["--json", "--since", "2026-11-01.."], ["--csv", "--by", "hour,model"],
        ["--since", "1mo", "--now", "2026-12-01T00:00:00Z"], ["--source", "native", "--model", "*"],
        ["--limit", "1", "--sort", "cost_usd"], ["--merge-worktrees", "--by", "project,meta.x"], ["--tz", "Asia/Tokyo"],
        ["--since", "2027-01-01.."],
    ],
    ids=" ".join,
)  # fmt: skip
def test_without_news_no_report_needs_sources_prices_or_parsers(warmed, words):
    """Whatever is asked and in whatever form, to a pipe."""
    code = (
        "import sys; from sessionlog.cli import main; "
        "code = main(sys.argv[1:]); print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    command = [sys.executable, "-c", code, "usage", *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "TZ": "UTC"})
    assert ran.stdout
    loaded = ran.stderr.split()
    assert HEAVY.isdisjoint({*loaded, *(name.split(".")[0] for name in loaded)})
    rooms = {name.split(".")[1] for name in loaded if name.startswith("sessionlog.")}
    assert rooms.isdisjoint({"sources", "pricing", "engine", "reader"})
    assert SLOW.isdisjoint(loaded)


def test_a_log_that_has_grown_is_read_with_what_a_scan_needs(warmed):
    """In a fresh interpreter: one source, and nothing that lists logs, replays sessions or starts processes."""
    with open(warmed / "s-first.jsonl", "ab") as log:
        log.write(_ANSWER)
    code = (
        "import sys; from sessionlog.cli import main; "
        "code = main(sys.argv[1:]); print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    command = [sys.executable, "-c", code, "usage", "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ})
    assert '"sessionlog.usage/1"' in ran.stdout
    loaded = set(ran.stderr.split())
    assert "sessionlog.sources.native" in loaded
    modules = {f"sessionlog.sources.{source_id.replace('-', '_')}" for source_id in OURS}
    assert loaded & modules == {"sessionlog.sources.native"}
    assert loaded & (HEAVY - {"orjson"} | UNNEEDED) == set()


@pytest.mark.parametrize("words", [["context"], ["context", "s-first"], ["diff", "s-first", "s-odd"]], ids=" ".join)
def test_a_session_is_read_with_its_own_source(warmed, words):
    """Its figures come from the ledger, which stays up to date for the next command: no log is listed."""
    code = (
        "import sys; from sessionlog.cli import main; "
        "code = main(sys.argv[1:]); print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    command = [sys.executable, "-c", code, *words, "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ})
    loaded = set(ran.stderr.split())
    assert "sessionlog.ledger.writer" not in loaded
    modules = {f"sessionlog.sources.{source_id.replace('-', '_')}" for source_id in OURS}
    assert loaded & modules == {"sessionlog.sources.native"}
    if words[0] == "context":
        assert '"session_requests": 1,' in ran.stdout


UNNEEDED = {
    "heapq", "sessionlog.engine", "sessionlog.sources.discover",
    "sessionlog.sources.fold_events", "sessionlog.transcript",
}  # fmt: skip
"""What a scan has no use for; each of them costs 0.2 to 2 ms."""


@pytest.mark.parametrize(
    "words",
    [[], ["--csv"], ["--since", "2026-11-01..", "--json"], ["--source", "native"], ["--since", "2027-01-01.."]],
    ids=" ".join,
)
def test_without_news_the_report_is_that_of_a_scan(warmed, cli, words):
    """The book that is only read says what a book in memory says."""
    words = [*words, "--now", "2026-12-01T00:00:00Z"]
    assert cli("usage", *words) == cli("usage", *words, "--no-ledger")


@pytest.mark.usefixtures("home")  # where nobody has a ledger
def test_a_question_without_a_cached_path_is_declined():
    """There is none but usage's now."""
    for command in set(COMMANDS) - {"usage"}:
        assert not cached_path.answer(command, settings_of(command, {"as_json": True}))
    assert fast_path.parse(["usage", "--json"])["as_json"]


@pytest.mark.parametrize(
    "change", [None, _new_log, _grown_log, _lost_log], ids=lambda change: getattr(change, "__name__", "none")
)
def test_a_budget_of_an_up_to_date_ledger_is_that_of_an_opened_one(warmed, cli, config, monkeypatch, record, change):
    """Also after a change, and with prices of one's own, for which the ledger has to be priced anew."""
    budget = '[budgets.daily]\nusd = 2\nwindow = "900d"\n[budgets.calls]\nrequests = 3\nwindow = "900d"\n'
    for own in ("", '[prices."vllm/*"]\ninput = 1000\noutput = 2000\n'):
        config(budget + own)
        now = ["--json", "--now", "2026-12-01T00:00:00Z"]
        before = cli("budget", *now)
        if change is not None and not own:
            change(warmed, record)
        light = cli("budget", *now)
        with monkeypatch.context() as patch:
            patch.setattr("sessionlog.analytics.budgets.report.ask_current", lambda *_: None)
            assert cli("budget", *now) == light
        assert light.json["rows"][1]["used"] >= before.json["rows"][1]["used"]
