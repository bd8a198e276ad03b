"""The server for agents, in this process: each tool returns the document of its command, and the error of a bad call is a sentence."""

import asyncio
import json
import os
import sqlite3
import sys
from contextlib import closing
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import jsonschema
import pytest

from sessionlog.analytics.budgets.tamper_check import marker_path
from sessionlog.cli import main
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.mcp_server import server
from sessionlog.mcp_server.call_context import load_context, session_target
from sessionlog.mcp_server.server import build_server
from sessionlog.mcp_server.tools import MAX_PARTS, MAX_POINTS, MAX_TEXT, TOOL_SPECS
from sessionlog.testing import FixedClock

TESTDATA = Path(__file__).parents[1] / "testdata"
NOW = "2026-11-21T12:00:00Z"
CONFIG = '[budgets.daily]\nusd = 20\nperiod = "day"\n\n[budgets.mine]\ntokens = 5000\nper = "session"\n'
TOOLS = ["session_status", "usage", "budget", "recent_sessions", "find", "context"]
SAME = {
    "status of the newest": ("session_status", {}, ["status"]),
    "status by id": ("session_status", {"session": "s-fail"}, ["status", "s-fail"]),
    "usage": ("usage", {}, ["usage", "--since", "7d", "--limit", "20"]),
    "usage of all time": (
        "usage",
        {"since": None, "until": "2026-11-20", "by": ["day", "model"], "sort": "-day", "limit": 1},
        ["usage", "--until", "2026-11-20", "--by", "day,model", "--sort", "-day", "--limit", "1"],
    ),
    "usage, filtered": ("usage", {"model": "gpt-*", "by": ""}, ["usage", "--since", "7d", "--model", "gpt-*", "--by", ""]),
    "budgets": ("budget", {}, ["budget"]),
    "sessions": ("recent_sessions", {}, ["sessions", "--limit", "10"]),
    "sessions, filtered": (
        "recent_sessions",
        {"limit": 1, "since": "2026-11-20..", "source": "native,codex", "status": ["success", "err*"], "project": "/src/*"},
        ["sessions", "--limit", "1", "--since", "2026-11-20..", "--source", "native,codex", "--status", "success",
         "--status", "err*", "--project", "/src/*"],
    ),
    "find": ("find", {"words": "mend"}, ["find", "mend", "-n", "10"]),
    "find, filtered": (
        "find", {"words": "mend", "part": "prompts", "since": "2026-11-20..", "project": "/src/*", "limit": 1},
        ["find", "mend", "-n", "1", "--in", "prompts", "--since", "2026-11-20..", "--project", "/src/*"],
    ),
    "context of the newest": ("context", {}, ["context", "s-new"]),
    "context at a request": ("context", {"session": "s-failed", "request": 1}, ["context", "s-failed", "--request", "1"]),
}  # fmt: skip
BAD = {
    "no number": ("usage", {"limit": "many"}, ["usage: limit: ", "integer", "totals are over all"]),
    "too small": ("recent_sessions", {"limit": 0}, ["recent_sessions: limit: ", "greater than or equal to 1"]),
    "another type": ("usage", {"by": [1]}, ["usage: by: ", "string", "provider, model"]),
    "no such argument": ("usage", {"sinc": "7d"}, ["no argument 'sinc'", "since, until, by"]),
    "no window": ("usage", {"since": "soon"}, ["usage: 'soon' is not a time window", "24h"]),
    "no group": ("usage", {"by": ["colour"]}, ["'colour'", "provider"]),
    "no source": ("recent_sessions", {"source": ["nobody"]}, ["'nobody'", "claude-code"]),
    "no words": ("find", {}, ["find: nothing to search for"]),
    "no part": ("find", {"words": "a", "part": "files"}, ["find: part: ", "prompts"]),
    "no session": ("session_status", {"session": "s-none"}, ["s-none: no such file", "session"]),
    "nothing named": ("context", {"session": " "}, ["names no session"]),
    "two sessions": ("context", {"session": "s-"}, ["'s-' names 2 sessions: s-failed, s-new"]),
    "no request": ("context", {"request": 9}, ["no request 9: s-new has 1"]),
    "no budget": ("budget", {"name": "weekly"}, ["no budget 'weekly'", "config.toml", "daily, mine"]),
    "no tool": ("shutdown", {}, ["no tool 'shutdown'", "session_status, usage, budget"]),
}


@pytest.fixture(scope="module", autouse=True)
def _described_once():
    """Describing the tools takes a server most of its first moment, and here are dozens of servers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "_describe", cache(server._describe))
        yield


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home with two sessions of our own and two budgets, and nothing else."""
    for name in os.environ:
        if name.startswith(("SESSIONLOG_", "XDG_")):
            monkeypatch.delenv(name)
    folder = tmp_path / "home"
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("TZ", "UTC")
    config = folder / ".config" / "sessionlog" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(CONFIG, "utf-8")
    record(logs_of(folder), "s-failed", start="2026-11-20T10:00:00Z", status="error", model="gpt-5.3-codex", cost=0.25)
    record(logs_of(folder), "s-new", start="2026-11-21T11:55:00Z", status=None)
    monkeypatch.chdir(tmp_path)
    return folder


def logs_of(home):
    """Where our own sessions are."""
    return home / ".local" / "state" / "sessionlog" / "sessions"


def record(folder, name, *, start, status="success", model="claude-opus-4-5", cost=None, requests=1, prompt="mend it"):
    """Record a session; None as the status leaves it without an end."""
    log = SessionLogger(
        folder, name, clock=FixedClock(start), model=model, provider="vendor", prompt=prompt, work_dir="/src/api"
    )
    for _ in range(requests):
        log.llm_request([{"role": "user", "content": prompt}], model=model)
        log.llm_response("Done.", model=model, usage={"input": 800, "output": 200}, latency_ms=2000, cost_usd=cost)
    if status is not None:
        log.end(status)
    log.close()
    return folder / f"{name}.jsonl"


def talk(talking, **options):
    """Let a client in this process talk with a server."""
    from mcp import Client

    async def run():
        built = build_server(clock=lambda: datetime(2026, 11, 21, 12, tzinfo=UTC), **options)
        async with Client(built, mode="legacy") as client:
            return await talking(client)

    return asyncio.run(run())


def ask(tool, arguments=None, **options):
    """The result of one call."""
    return talk(lambda client: client.call_tool(tool, arguments), **options)


def sentence_of(result):
    """Return the error text of a failed call."""
    assert result.is_error
    assert result.structured_content is None
    [content] = result.content
    return content.text


@pytest.mark.parametrize(("tool", "arguments", "command"), SAME.values(), ids=SAME)
def test_a_tool_returns_the_document_of_its_command(home, capsys, tool, arguments, command):
    """The same document, as structured content and once more as text, and it is as its schema promises."""
    now = [] if tool == "context" else ["--now", NOW]
    assert main(["status", "--json"]) == 0  # from now on there is a ledger, whoever asks
    capsys.readouterr()
    assert main([*command, *now, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)

    async def talking(client):
        [described] = [one for one in (await client.list_tools()).tools if one.name == tool]
        return described, await client.call_tool(tool, arguments)

    described, result = talk(talking)
    assert not result.is_error
    assert result.structured_content == printed == json.loads(result.content[0].text)
    checks = jsonschema.validators.validator_for(described.output_schema)
    checks.check_schema(described.output_schema)
    schema = checks(described.output_schema)
    schema.validate(printed)
    assert [name for name in printed if schema.is_valid({key: printed[key] for key in printed if key != name})] == []


def test_a_long_text_is_cut_around_what_was_found(home):
    """So that an answer does not fill a window; the marks still hold, and a note says so."""
    prompt = f"{'before ' * 300}needle{' after' * 300}"
    record(logs_of(home), "s-long", start="2026-11-21T11:30:00Z", prompt=prompt)
    result = ask("find", {"words": "needle", "part": "prompts"})
    [hit] = result.structured_content["hits"]
    [[start, end]] = hit["marks"]
    assert hit["text"][start:end] == "needle"
    assert len(hit["text"]) == MAX_TEXT + 2
    assert hit["text"].strip("\N{HORIZONTAL ELLIPSIS}") in prompt
    assert len(hit["prompt"]) <= 200
    assert "cut to 600 characters" in result.content[1].text


def test_the_tools_describe_themselves(home):
    """Six, which only read, with what they may be asked, each argument explained, and nothing else allowed."""
    listed = talk(lambda client: client.list_tools()).tools
    assert [tool.name for tool in listed] == TOOLS == list(TOOL_SPECS)
    for tool in listed:
        assert 100 < len(tool.description) < 400
        assert tool.annotations.read_only_hint
        assert tool.input_schema["additionalProperties"] is False
        assert "required" not in tool.input_schema
        assert all(one.get("description") for one in tool.input_schema["properties"].values())


@pytest.mark.parametrize(("tool", "arguments", "words"), BAD.values(), ids=BAD)
def test_a_bad_call_is_a_sentence(home, tool, arguments, words):
    """It names the thing, the place and what is allowed, on one line."""
    sentence = sentence_of(ask(tool, arguments))
    assert [word for word in words if word not in sentence] == []
    assert "\n" not in sentence
    assert "pydantic" not in sentence


def test_an_empty_home_has_answers(tmp_path, monkeypatch):
    """Nothing recorded, no budgets: documents without values, and a note; only a context needs a log."""
    monkeypatch.chdir(tmp_path)
    env = {"HOME": str(tmp_path)}

    async def talking(client):
        return {name: await client.call_tool(name) for name in TOOLS}

    results = talk(talking, env=env)
    assert "no session has been recorded yet" in sentence_of(results.pop("context"))
    assert "nothing to search for" in sentence_of(results.pop("find"))
    assert not any(result.is_error for result in results.values())
    status = results["session_status"].structured_content
    assert status["usage"]["session"] is None
    assert status["unavailable"]["session"] == "no session has been recorded yet"
    assert "no budgets are set" in results["budget"].content[1].text
    assert str(tmp_path) in results["budget"].content[1].text
    assert "nothing was used" in results["usage"].content[1].text


def test_the_newest_of_several_in_one_log(tmp_path):
    """A database holds many sessions: status and context speak of the same one."""
    made = TESTDATA / "sources" / "opencode" / "fork" / "home" / ".local" / "share" / "opencode" / "opencode.db.sql"
    database = tmp_path / ".local" / "share" / "opencode" / "opencode.db"
    database.parent.mkdir(parents=True)
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(made.read_text("utf-8"))
    env = {"HOME": str(tmp_path)}
    listed = [row["session"] for row in ask("recent_sessions", env=env).structured_content["rows"]]
    assert len(listed) > 1
    status = ask("session_status", env=env).structured_content["session"]
    context = ask("context", env=env).structured_content
    assert (context["path"], context["session"]) == (status["path"], status["id"]) == (str(database), "ses_2")


@pytest.mark.parametrize("allow_paths", [False, True])
def test_the_error_names_a_locked_database(tmp_path, monkeypatch, allow_paths):
    """Not to be none of an agent."""
    made = TESTDATA / "sources" / "opencode" / "fork" / "home" / ".local" / "share" / "opencode" / "opencode.db.sql"
    database = tmp_path / ".local" / "share" / "opencode" / "opencode.db"
    database.parent.mkdir(parents=True)
    monkeypatch.setattr("sessionlog.reader.database.open_database.__kwdefaults__", {"wait_seconds": 0.05})
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.executescript(made.read_text("utf-8"))
        connection.execute("BEGIN EXCLUSIVE")
        sentence = sentence_of(
            ask("context", {"session": str(database)}, env={"HOME": str(tmp_path)}, allow_paths=allow_paths)
        )
    assert sentence == (f"context: {database}: locked by another program; close it, or try again when it has finished")


def test_a_note_counts_what_a_limit_left_out(home):
    """Beside the document: what stands in it are totals over all."""
    result = ask("usage", {"limit": 1})
    assert len(result.structured_content["rows"]) == 1
    assert result.structured_content["totals"]["sessions"] == 2
    assert result.content[1].text.startswith("1 more row")


def test_one_budget_can_be_asked_for(home):
    """By its name."""
    found = ask("budget", {"name": "mine"}).structured_content
    assert {one["name"]: one["used"] for one in found["rows"]} == {"mine": 1000}


@pytest.mark.parametrize("tool", ["session_status", "context"])
def test_nothing_but_logs_is_read(home, tmp_path, tool):
    """A file, folder or device that is no log is refused by name, without its content; a log anywhere is read."""
    secret = tmp_path / "secret.txt"
    secret.write_text("hunter2\n", "utf-8")
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    for path in (secret, tmp_path, home, pipe, "/dev/zero", "/"):
        sentence = sentence_of(ask(tool, {"session": str(path)}, allow_paths=True))
        assert sentence == f"{tool}: {path}: no log of a known agent; `recent_sessions` lists ids and paths"
    log = record(tmp_path / "elsewhere", "s-else", start="2026-11-21T10:00:00Z")
    found = ask(tool, {"session": str(log)}, allow_paths=True).structured_content
    assert (found["session"]["id"] if tool == "session_status" else found["session"]) == "s-else"


@pytest.mark.parametrize("tool", ["session_status", "context"])
def test_only_logs_where_agents_write_are_read(home, tmp_path, tool):
    """Unless the user allows other paths, whatever is there is refused alike, a log of another folder included."""
    log = record(tmp_path / "elsewhere", "s-else", start="2026-11-21T10:00:00Z", prompt="hunter2")
    beside = logs_of(home) / "notes.txt"
    beside.write_text("hunter2\n", "utf-8")
    for path in (log, log.parent, beside, tmp_path / "home", "/dev/zero", "~/.config/sessionlog/config.toml"):
        sentence = sentence_of(ask(tool, {"session": str(path)}))
        assert sentence.startswith(f"{tool}: {path}: not among the logs of agents; ")
        assert "--allow-paths" in sentence
    for path in (logs_of(home) / "s-new.jsonl", "~/.local/state/sessionlog/sessions/s-new.jsonl"):
        found = ask(tool, {"session": str(path)}).structured_content
        assert (found["session"]["id"] if tool == "session_status" else found["session"]) == "s-new"


@pytest.mark.parametrize("tool", ["session_status", "context"])
def test_a_folder_named_like_a_home_is_no_way_out(home, tmp_path, monkeypatch, tool):
    """The path that is checked is the path that is read, whatever stands for a home in it."""
    record(tmp_path / "work" / "~" / "x", "s-else", start="2026-11-21T10:00:00Z", prompt="hunter2")
    monkeypatch.chdir(tmp_path / "work")
    for path in ("~/x/s-else.jsonl", "./~/x/s-else.jsonl"):
        assert "not among the logs of agents" in sentence_of(ask(tool, {"session": path}))
        found = ask(tool, {"session": path}, allow_paths=True).structured_content
        assert (found["session"]["id"] if tool == "session_status" else found["session"]) == "s-else"


def test_a_link_is_not_followed_after_it_was_checked(home, tmp_path):
    """The log that it led to is read, whatever it leads to later."""
    log = logs_of(home) / "s-new.jsonl"
    (tmp_path / "link.jsonl").symlink_to(log)
    context = load_context(None, datetime.fromisoformat(NOW), allow_paths=False)
    assert session_target(str(tmp_path / "link.jsonl"), context) == str(log)


def test_only_the_ledger_is_written(home):
    """All tools, good and bad calls: every other file of the home stays as it is; budgets leave the ledger's marker."""

    def files():
        return {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}

    async def talking(client):
        for tool, arguments, *_ in (*SAME.values(), *BAD.values()):
            await client.call_tool(tool, arguments)

    before = files()
    talk(talking)
    changed = {path for path, content in files().items() if before.pop(path, None) != content}
    assert before == {}
    ours = home / ".local" / "share" / "sessionlog"
    ledger = ours / "ledger.sqlite"
    assert ledger in changed
    assert {path for path in changed if path.parent != ours} == {Path(marker_path(str(ledger), os.environ))}


def test_what_comes_from_a_log_is_clean(home):
    """Characters that act or hide are shown as escapes, in documents and in sentences; lines stay lines."""
    record(logs_of(home), "s-odd", start="2026-11-21T11:58:00Z", prompt="a\x1b]0;x\x07b\u202ec\ud800d")
    result = ask("recent_sessions", {"limit": 1})
    [row] = result.structured_content["rows"]
    assert row["prompt"].startswith("a\\x1b]0;x\\x07b\\u202ec")
    assert result.content[0].text.isprintable()
    assert "s\\x1b[2J" in sentence_of(ask("context", {"session": "s\x1b[2J"}))
    assert "valid string" in sentence_of(ask("session_status", {"session": "\ud800"}))


def test_the_growth_of_a_long_session_is_thinned(home):
    """Thousands of points would fill the window that is asked about; first and last stay, and a note counts the rest."""
    record(logs_of(home), "s-long", start="2026-11-21T11:58:00Z", requests=MAX_POINTS + 7)
    result = ask("context", {"session": "s-long"})
    numbers = [point["request"] for point in result.structured_content["growth"]]
    assert (len(numbers), numbers[0], numbers[-1]) == (MAX_POINTS, 1, MAX_POINTS + 7)
    assert numbers == sorted(set(numbers))
    assert result.content[1].text == f"growth: {MAX_POINTS} of {MAX_POINTS + 7} requests, evenly spread"


def test_the_answer_about_a_context_is_bounded(home):
    """However many tools there are, and however long their names: the largest of each kind, and one part for the rest."""
    log = SessionLogger(logs_of(home), "s-wide", clock=FixedClock("2026-11-21T11:58:00Z"), model="m", provider="vendor")
    tools = [{"name": f"{number:04}" + "x" * 300, "description": "d" * number} for number in range(300)]
    log.llm_request([{"role": "user", "content": "go"}], model="m", tools=tools)
    log.llm_response("Done.", model="m")
    log.close()
    result = ask("context", {"session": "s-wide"})
    document = result.structured_content
    parts = [part for part in document["parts"] if part["kind"] == "tools"]
    assert len(parts) == MAX_PARTS + 1
    assert parts[-1]["name"] == "281 more"
    assert sum(part["tokens"] for part in document["parts"]) == document["total_tokens"]
    assert max(len(one["name"]) for one in [*document["parts"], *document["largest"]]) <= 200
    assert f"parts: the {MAX_PARTS} largest of each kind" in result.content[1].text


def test_a_mistake_of_ours_ends_nothing(home, monkeypatch):
    """The client gets a sentence, the person at the server's stderr where it was, and the next call its answer."""
    logged = []

    def fail(**_):
        raise ZeroDivisionError("of all things")

    async def talking(client):
        with monkeypatch.context() as broken:
            broken.setattr("sessionlog.mcp_server.tools.list_sessions", fail)
            first = await client.call_tool("recent_sessions", {})
        return first, await client.call_tool("recent_sessions", {})

    broken, whole = talk(talking, log_error=logged.append)
    assert (
        sentence_of(broken) == "recent_sessions: ZeroDivisionError; run `sessionlog sessions` in a terminal for details"
    )
    assert not whole.is_error
    [line] = logged
    assert line.startswith("sessionlog mcp: recent_sessions: ZeroDivisionError: of all things (")
    assert "test_mcp_server.py:" in line


@pytest.mark.parametrize("text", ["= nonsense", "[prices.'a/b']\ninput = 'x'"])
def test_settings_that_cannot_be_used_are_named(home, text):
    """The file is named, and once it is mended the same server answers."""
    config = home / ".config" / "sessionlog" / "config.toml"

    async def talking(client):
        config.write_text(text, "utf-8")
        broken = await client.call_tool("session_status", {})
        config.write_text(CONFIG, "utf-8")
        return broken, await client.call_tool("session_status", {})

    broken, mended = talk(talking)
    assert "config.toml" in sentence_of(broken)
    assert not mended.is_error


def test_a_budget_that_cannot_be_used_hides_nothing_else(home):
    """The status is what it is, and the reason stands where the budgets would."""
    (home / ".config" / "sessionlog" / "config.toml").write_text("[budgets.daily]\nusd = -1\nperiod = 'day'", "utf-8")
    result = ask("session_status")
    assert not result.is_error
    assert "daily" in str(result.structured_content["unavailable"])
    assert result.structured_content["usage"]["session"]["requests"] == 1


def test_a_ledger_that_is_none(home, monkeypatch):
    """Logs answer what they can; budgets are then unknown, with the reason."""
    ledger = home / "ledger.db"
    ledger.write_bytes(b"not a database, " * 100)
    monkeypatch.setenv("SESSIONLOG_LEDGER", str(ledger))
    assert ask("usage").structured_content["totals"]["sessions"] == 2
    assert str(ledger) in sentence_of(ask("budget"))


def test_without_the_extra(home, capsys, monkeypatch):
    """One sentence names the package to install."""
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    assert main(["mcp"]) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "sessionlog: the MCP server needs: pip install 'sessionlog[mcp]'\n"
