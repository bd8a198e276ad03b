"""`sessionlog status`: one document, one line or one page, the same without the ledger; the line imports little."""

import io
import json
import os
import subprocess
import sys

import pytest

from sessionlog.cli import statusline_input
from tests.cli.test_without_news import settle

LONG = "2026-11-20T09:00:00Z"
ALLOWED = {
    "sessionlog", "sessionlog._version", "sessionlog.analytics", "sessionlog.analytics.columns",
    "sessionlog.analytics.conditions", "sessionlog.analytics.limits", "sessionlog.analytics.status",
    "sessionlog.analytics.status.answer", "sessionlog.analytics.status.budgets",
    "sessionlog.analytics.status.document", "sessionlog.analytics.status.logs",
    "sessionlog.analytics.status.question", "sessionlog.analytics.status.reader",
    "sessionlog.analytics.status.statusline_input", "sessionlog.analytics.status.sums",
    "sessionlog.analytics.status.typical", "sessionlog.analytics.sums", "sessionlog.analytics.unreadable", "sessionlog.ledger.problems", "sessionlog.ledger.refreshing", "sessionlog.analytics.zones",
    "sessionlog.cli", "sessionlog.cli.fast_path", "sessionlog.cli.functions", "sessionlog.cli.options",
    "sessionlog.cli.output", "sessionlog.cli.reporting", "sessionlog.cli.reports", "sessionlog.cli.status",
    "sessionlog.cli.statusline_input", "sessionlog.context", "sessionlog.context.windows", "sessionlog.errors",
    "sessionlog.events", "sessionlog.events.names", "sessionlog.files", "sessionlog.files.appending",
    "sessionlog.files.descriptors", "sessionlog.files.file_lock", "sessionlog.files.paths",
    "sessionlog.files.reading", "sessionlog.files.urls", "sessionlog.files.whole_files", "sessionlog.lazy_imports",
    "sessionlog.ledger", "sessionlog.ledger.ask", "sessionlog.ledger.book", "sessionlog.ledger.freshness",
    "sessionlog.ledger.identity", "sessionlog.ledger.opening", "sessionlog.ledger.quarter_hours",
    "sessionlog.ledger.schema", "sessionlog.ledger.storable", "sessionlog.ledger.trust", "sessionlog.places",
    "sessionlog.render", "sessionlog.render.cells", "sessionlog.render.currency", "sessionlog.render.escape",
    "sessionlog.render.line", "sessionlog.render.numbers", "sessionlog.render.status_line",
    "sessionlog.render.stream", "sessionlog.render.times", "sessionlog.settings", "sessionlog.sources",
    "sessionlog.sources.find_places", "sessionlog.sources.places",
}  # fmt: skip
"""All of our modules that a status line may load while nothing has changed."""
BUDGETS = '# mine\n[budgets.daily]\nusd = 40\nperiod = "day"\n\n[budgets.each]\ntokens = 10_000\nper = "session"\n'


@pytest.fixture
def sessions(home, record):
    """The folder of our own logs, with sessions of which nothing is new."""
    folder = home / ".local/state/sessionlog/sessions"
    record(folder, "s-first", start=LONG, cost=1.5, metadata={"task": "bugfix"})
    record(folder, "s-second", status="error", model="gpt-5.3-codex", provider="openai", cost=0.25)
    record(folder, "s-odd", status=None, model='m"é\x7f', provider="p\\\n", start="2026-11-20T08:00:00Z")
    settle(home / ".local/state")
    return folder


@pytest.fixture
def tell(monkeypatch):
    """Be an agent that writes to the command's stdin."""
    streams = []

    def write(text):
        readable, writable = os.pipe()
        os.write(writable, text if isinstance(text, bytes) else json.dumps(text).encode())
        os.close(writable)
        streams.append(os.fdopen(readable))
        monkeypatch.setattr(sys, "stdin", streams[-1])

    yield write
    for stream in streams:
        stream.close()


def both(cli, *words, before=lambda: None):
    """What the ledger and a scan of all logs say."""
    before()
    known = cli("status", *words)
    before()
    return known, cli("status", *words, "--no-ledger")


# --- what is said


def test_the_document_is_about_the_session_with_the_newest_event(sessions, cli):
    """Its own use, the cost that its log tells, and what fills its context."""
    found = cli("status", "--json").json
    assert found["schema"] == "sessionlog.status/1"
    assert found["session"]["id"] == "s-second"
    assert (found["usage"]["session"]["totalTokens"], found["usage"]["session"]["cost"]) == (1000, 0.25)
    assert found["context"]["used"] == 800


def test_a_session_is_named_by_a_part_of_its_id_or_by_its_log(sessions, cli):
    """And so in every form."""
    for target in ("s-first", "s-f", "first", sessions / "s-first.jsonl"):
        assert cli("status", target, "--json").json["session"]["id"] == "s-first"
    assert "s-first" in cli("status", "s-f").out
    assert cli("status", "s-f", "--line").out.startswith("opus-4-5 · ")


def test_a_log_that_lies_elsewhere_is_read_by_itself(cli, record, tmp_path):
    """It needs no ledger, and leaves none."""
    path = record(tmp_path / "logs", "s-far", cost=2.0)
    found = cli("status", path, "--json").json
    assert found["usage"]["session"]["cost"] == 2.0
    assert found["usage"]["today"] is None
    assert not (tmp_path / "home/.local/share/sessionlog").exists()


def test_all_sessions_together(sessions, cli):
    """The sum, and no session."""
    found = cli("status", "--all", "--json").json
    assert found["session"] is None
    assert found["usage"]["session"]["requests"] == 3


def test_what_names_several_is_refused_with_the_candidates(sessions, cli):
    """By exit code 2; what names none is 3; what cannot be together is 2."""
    ambiguous = cli("status", "s-")
    assert (ambiguous.code, ambiguous.out) == (2, "")
    assert all(name in ambiguous.err for name in ("s-first", "s-odd", "s-second"))
    assert cli("status", "nobody").code == 3
    assert cli("status", "nobody", "--line").code == 3
    assert cli("status", "s-first", "--all").code == 2
    assert cli("status", "--json", "--line").code == 2
    assert cli("status", "--tz", "nowhere", "--line").code == 2


def test_the_moment_and_the_zone_can_be_given(sessions, cli):
    """Today is the day of that moment there."""
    words = ("--now", "2026-11-20T23:30:00Z", "--json")
    assert cli("status", *words, "--tz", "UTC").json["usage"]["today"]["requests"] == 3
    assert cli("status", *words, "--tz", "Europe/Berlin").json["usage"]["today"]["requests"] == 0


def test_without_the_ledger_the_answer_is_the_same(sessions, cli):
    """Everything is scanned anew."""
    words = ("status", "--json", "--now", "2026-11-21T00:00:00Z")
    assert cli(*words, "--no-ledger") == cli(*words)


def test_prices_of_ones_own_count(sessions, cli, record, tmp_path):
    """For one question, or from the settings."""
    prices = tmp_path / "prices.toml"
    prices.write_text('["vllm/mine"]\ninput = 1000\noutput = 0\n')
    record(sessions, "s-mine", model="mine", provider="vllm")
    assert cli("status", "s-mine", "--json").json["usage"]["session"]["cost"] is None
    assert cli("status", "s-mine", "--json", "--prices", prices).json["usage"]["session"]["cost"] == 0.8


def test_nothing_recorded_is_no_error(cli):
    """Every form says so."""
    assert cli("status", "--json").json["unavailable"]["session"] == "no session has been recorded yet"
    assert cli("status", "--line").out == "no session yet\n"
    assert "no session has been recorded yet" in cli("status").out


# --- the line


def test_the_line_is_one_line_whatever_happens(sessions, cli, config, home):
    """It stands at the bottom of a screen, and a program asked for it."""
    (home / ".local/share/sessionlog").mkdir(parents=True)
    (home / ".local/share/sessionlog/ledger.sqlite").write_bytes(b"nothing of the kind" * 400)
    broken = cli("status", "--line")
    assert (broken.code, broken.out.count("\n"), broken.err) == (0, 1, "")
    assert "$0.25 session" in broken.out


@pytest.mark.parametrize(
    "text", ["[budgets.x]\nusd = -1\n", "[budgets.x\n", "x = 1\n", "budgets = 3\n", '[prices."x/y"]\ninput = -1\n']
)
def test_a_mistake_in_the_settings_takes_one_word_of_the_line(sessions, cli, config, text):
    """What needs no budget is there."""
    config(text)
    assert cli("status", "--line") == (0, "gpt-5.3-codex · ctx <1 % · $0.25 session · config.toml?\n", "")


def test_a_mistake_in_a_budget_does_not_hide_the_rest(sessions, cli, config, home):
    """The file and the mistake are named; a file that cannot be read at all is an error that names it, too."""
    config('[budgets.x]\nusd = -1\nperiod = "day"\n')
    path = home / ".config/sessionlog/config.toml"
    found = cli("status", "--json")
    assert (found.code, found.err) == (0, "")
    assert found.json["usage"]["session"]["cost"] == 0.25
    assert found.json["unavailable"]["usage.budgets"].startswith(f"{path}: [budgets.x] usd must be")
    page = cli("status")
    assert (page.code, "s-second" in page.out, "[budgets.x] usd must be" in page.out) == (0, True, True)
    config("[budgets.x\n")
    broken = cli("status")
    assert (broken.code, str(path) in broken.err) == (2, True)


def test_a_folder_says_which_session_it_took(cli, record, tmp_path):
    """And of how many; one log alone needs no word."""
    for number, name in enumerate(("s-a", "s-b")):
        record(tmp_path / "logs", name, cost=2.0, start=f"2026-11-20T0{number}:00:00Z")
    ran = cli("status", tmp_path / "logs", "--json")
    assert ran.json["session"]["id"] == "s-b"
    assert ran.err == f"{tmp_path / 'logs'}: s-b has the newest event of 2 sessions in it\n"
    assert cli("status", tmp_path / "logs/s-a.jsonl", "--json").err == ""


def test_what_is_not_there_says_where_to_look(sessions, cli):
    """As does what names too many."""
    for word in ("nonsense", "s-"):
        assert "`sessionlog sessions` lists" in cli("status", word).err


def test_the_line_fits_the_columns_that_there_are(warmed, cli, monkeypatch):
    """Where nobody says how many, it is as long as it is."""
    words = ("s-first", "--line")
    assert cli("status", *words).out == "opus-4-5 · ctx <1 % · $1.50 session\n"
    monkeypatch.setenv("COLUMNS", "24")
    assert cli("status", *words).out == "opus-4-5 · ctx <1 %\n"


def test_a_session_that_is_not_known_yet_has_no_strangers_budget(warmed, cli, config, tell):
    """Its own cost is what its agent tells."""
    config('[budgets.each]\nusd = 10\nper = "session"\n')
    told = {"session_id": "new", "cost": {"total_cost_usd": 2.5}}
    short, whole = both(cli, "--line", before=lambda: tell(told))
    assert short == whole == (0, "$2.50 session · each ▓▓░░░░░░ 25 %\n", "")
    short, whole = both(cli, "--line", before=lambda: tell({"session_id": "new"}))
    assert short == whole == (0, "no session yet\n", "")


TOLD = {
    "session_id": "s-first", "model": {"id": "claude-sonnet-4-5"}, "cost": {"total_cost_usd": 9.5},
    "context_window": {"used_percentage": 33}, "rate_limits": {"five_hour": {"used_percentage": 50}},
}  # fmt: skip


def test_what_an_agent_writes_is_heard(warmed, cli, tell):
    """It names the session, and the ledger has the rest."""
    short, whole = both(cli, "--line", before=lambda: tell(TOLD))
    assert short == whole
    assert short.out == "sonnet-4-5 · ctx 33 % · $9.50 session · 5h ▓▓▓▓░░░░ 50 %\n"


def test_it_names_the_session(warmed, cli, tell):
    """By its id or by its log; one that the ledger does not know yet is not taken for another."""
    named = [{"session_id": "s-first"}, {"transcript_path": str(warmed / "s-first.jsonl")}]
    for told in named:
        short, whole = both(cli, "--line", before=lambda told=told: tell(told))
        assert short.out.startswith("opus-4-5 · ctx <1 % · $1.50 session")
        assert short == whole
    short, whole = both(cli, "--line", before=lambda: tell({"session_id": "s-f"}))
    assert short == whole == (0, "no session yet\n", "")


@pytest.mark.parametrize("junk", [b"", b"{", b"\xff\xfe{}", b"[1]", b"null", b"{}" * 9, b"\0" * 100, b"{" * (3 << 20)])
def test_junk_is_not_heard(warmed, cli, junk):
    """It is as if nothing was written."""
    silent = cli("status", "--line")
    command = [sys.executable, "-m", "sessionlog", "status", "--line"]
    ran = subprocess.run(command, input=junk, capture_output=True, timeout=60)
    assert (ran.returncode, ran.stdout.decode(), ran.stderr) == (0, silent.out, b"")


def test_a_pipe_with_nothing_in_it_is_not_waited_for(warmed, cli):
    """Somebody holds its other end, and never writes."""
    readable, writable = os.pipe()
    command = [sys.executable, "-m", "sessionlog", "status", "--line"]
    try:
        ran = subprocess.run(command, stdin=readable, capture_output=True, timeout=30)
    finally:
        os.close(readable)
        os.close(writable)
    assert ran.stdout.decode() == cli("status", "--line").out


@pytest.mark.parametrize("stdin", [None, io.StringIO("{}")], ids=["none", "no file"])
def test_a_stdin_that_is_no_file_tells_nothing(monkeypatch, stdin):
    """As in a program that runs without one."""
    monkeypatch.setattr(sys, "stdin", stdin)
    assert statusline_input.read_statusline_input() is None


def test_a_named_session_does_not_listen(warmed, cli, tell):
    """What an agent tells is about another one."""
    tell(TOLD)
    assert cli("status", "s-second", "--line").out.startswith("gpt-5.3-codex")


# --- the same, and fast


@pytest.mark.parametrize(
    "budgets", ["", BUDGETS, "[budgets]\nx = { tokens = 9, window = '1h' }\n"], ids=["", "plain", "toml"]
)
@pytest.mark.parametrize(
    "words",
    [
        ["--json"], ["--line"], ["--all", "--json"], ["--all", "--line"], ["s-first", "--json"], ["s-f", "--line"],
        ["s-o", "--json"], ["LOG", "--json"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_the_answer_is_that_of_a_scan(warmed, cli, monkeypatch, config, words, budgets):
    """Stdout, stderr and exit code; with budgets of one's own, too."""
    for module in ("budgets", "document"):
        monkeypatch.setattr(f"sessionlog.analytics.status.{module}.stamp", lambda time_ns: time_ns and "then")
    monkeypatch.setattr("sessionlog.analytics.budgets.states._stamp", lambda time_ns: time_ns and "then")
    if budgets:
        config(budgets)
    words = [str(warmed / "s-first.jsonl") if word == "LOG" else word for word in words]
    known, scanned = both(cli, *words)
    assert known == scanned
    assert (known.code, known.err) == (0, "")


def test_a_terminal_gets_its_line_in_colours(warmed, cli, monkeypatch):
    """A pipe does not."""
    plain = cli("status", "--line").out
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = cli("status", "--line").out
    assert "\x1b[" in coloured
    assert "\x1b[" not in plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert cli("status", "--line").out == plain


def test_a_line_imports_next_to_nothing(warmed):
    """In a fresh interpreter, with something on its stdin."""
    code = (
        "import sys; bare = set(sys.modules); from sessionlog.cli import main; "
        "code = main(sys.argv[1:]); print(*set(sys.modules) - bare, file=sys.stderr); sys.exit(code)"
    )
    command = [sys.executable, "-c", code, "status", "--line"]
    ran = subprocess.run(command, input=json.dumps(TOLD), capture_output=True, text=True, check=True)
    assert ran.stdout
    assert {name for name in ran.stderr.split() if name.startswith("sessionlog")} <= ALLOWED
