"""llm's database: two generations of tables, and token counts that mean what each provider means by them."""

import json
import os
import sqlite3
from pathlib import Path

import pytest

from sessionlog.errors import LogNotReadable, Problem
from sessionlog.events.times import parse_time
from sessionlog.render.replay.fold import fold_replay
from sessionlog.sources.llm import SOURCE, Row, State, provider_and_model, steps, tokens_of, tools_in
from sessionlog.sources.steps import Response
from tests.sources.homes import build_home

PLACE = ".config/io.datasette.llm/logs.db"


@pytest.fixture
def log(tmp_path):
    """Build a case's database and return its path."""
    return lambda case: str(build_home(f"llm/{case}", tmp_path) / PLACE)


def read(path, session_id=None):
    """The events of a session."""
    return [item for item in SOURCE.read(path, session_id) if not isinstance(item, Problem)]


def messages(events):
    """(role, content) of all that was sent, in order."""
    return [(one["role"], one["content"]) for e in events if e.type == "llm.request" for one in e.data["messages"]]


def test_logs_are_where_the_command_keeps_them():
    """Its own variable wins; else the application folders of three platforms."""
    assert list(SOURCE.locate({"LLM_USER_PATH": "/d", "HOME": "/h"})) == ["/d/logs.db"]
    places = list(SOURCE.locate({"HOME": "/h", "APPDATA": "/a"}))
    assert places == [
        "/h/.config/io.datasette.llm/logs.db",
        "/h/Library/Application Support/io.datasette.llm/logs.db",
        "/a/io.datasette.llm/logs.db",
    ]
    assert next(iter(SOURCE.locate({"HOME": "/h", "XDG_CONFIG_HOME": "/x"}))) == "/x/io.datasette.llm/logs.db"


def test_a_folder_lists_its_databases_and_nothing_else(tmp_path):
    """embeddings.db lies beside logs.db and is no log."""
    for name in ("logs.db", "embeddings.db", "keys.json"):
        (tmp_path / name).write_bytes(b"")
    assert list(SOURCE.list_logs(str(tmp_path))) == [str(tmp_path / "logs.db")]


def test_a_database_is_asked_whose_it_is(log, tmp_path):
    """The tables decide; words in another program's database, and text, do not."""
    path = log("turns")
    assert SOURCE.recognises(path, Path(path).read_bytes()[:65536])
    other = str(tmp_path / "other.db")
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE messages (text)")
        db.execute("INSERT INTO messages VALUES ('CREATE TABLE _llm_migrations; responses; turns')")
    db.close()
    assert not SOURCE.recognises(other, Path(other).read_bytes()[:65536])
    assert not SOURCE.recognises(path, b'{"_llm_migrations": "responses"}\n')
    assert not SOURCE.recognises(str(tmp_path / "gone.db"), b"SQLite format 3\x00")


@pytest.mark.parametrize(
    ("model", "provider", "rest"),
    [
        ("anthropic/claude-sonnet-4-5", "anthropic", "claude-sonnet-4-5"),
        ("gemini/gemini-2.5-pro", "google", "gemini-2.5-pro"),
        ("openrouter/openai/gpt-5", "openrouter", "openai/gpt-5"),
        ("gpt-4o", "openai", "gpt-4o"),
        ("o3-mini", "openai", "o3-mini"),
        ("gpt-oss:20b", "unknown", "gpt-oss:20b"),
        ("orca-mini", "unknown", "orca-mini"),
        ("anthropic/", "unknown", "anthropic/"),
        ("somebody/gpt-4", "unknown", "somebody/gpt-4"),
    ],
)
def test_a_model_names_its_provider_only_where_that_is_sure(model, provider, rest):
    """A plugin's prefix or a family of the great three; anything else is unknown."""
    assert provider_and_model(model) == (provider, rest)


def counts(inputs, outputs, details):
    """The usage of one row."""
    found = tokens_of(Row(input_tokens=inputs, output_tokens=outputs, token_details=json.dumps(details)))
    usage = found.usage
    assert not found.issues
    return usage.input, usage.cache_read, usage.cache_write, usage.output, usage.reasoning


def test_details_say_what_the_totals_include():
    """OpenAI and Gemini read the cache within the input, Anthropic beside it; thoughts may be beside the output."""
    assert counts(100, 9, {"prompt_tokens_details": {"cached_tokens": 30, "cache_write_tokens": 20}}) == (
        50,
        30,
        20,
        9,
        0,
    )
    assert counts(100, 9, {"cache_read_input_tokens": 30, "cache_creation_input_tokens": 20}) == (100, 30, 20, 9, 0)
    assert counts(100, 9, {"candidatesTokenCount": 4, "thoughtsTokenCount": 5}) == (100, 0, 0, 9, 5)
    assert counts(100, 4, {"thoughtsTokenCount": 5}) == (100, 0, 0, 9, 5)
    assert counts(10, 0, {"prompt_tokens_details": {"cached_tokens": 99}}) == (0, 10, 0, 0, 0)


def test_a_call_is_answered_its_duration_after_it_was_asked(log):
    """The row's time is the start; old rows have no zone."""
    [session] = SOURCE.scan(log("tools-and-cache"), None).sessions
    assert session.start_ns == parse_time("2026-11-20T10:00:00.123456Z")
    first = session.records[0]
    assert (first.time_ns, first.latency_ms) == (parse_time("2026-11-20T10:00:01.623456Z"), 1500.0)
    assert first.response_model == "gpt-4o-mini-2024-07-18"


def test_old_tables_read_as_a_conversation(log):
    """A system prompt once, tools with the results that the next row holds, an end where nothing is open."""
    events = read(log("tools-and-cache"))
    assert messages(events)[:2] == [("system", "Be brief."), ("user", "What is 1+2?")]
    assert [role for role, _ in messages(events)].count("system") == 1
    tools = [e.data for e in events if e.type == "tool.call"]
    assert [(t["tool"], t["output"], t.get("error")) for t in tools] == [
        ("add", "3", None),
        ("fetch", "Error: timed out", "Error: timed out"),
    ]
    assert (events[0].type, events[-1].type, events[-1].data["status"]) == ("session.start", "session.end", "success")
    assert list(fold_replay(iter(events), session_id="01conva"))


def test_a_tree_of_messages_reads_as_a_conversation(log):
    """Each message once, a text pieced together from a fragment, the reasoning apart from the answer."""
    events = read(log("turns"), "01t")
    heard = messages(events)
    assert [text for role, text in heard if role == "user"] == ["What is 1+2?", "A long text. Sum it up."]
    assert [role for role, _ in heard].count("system") == 1
    answers = [e.data for e in events if e.type == "llm.response"]
    assert [a["content"] for a in answers] == ["", "Three.", "Short."]
    assert answers[0]["reasoning"] == "Add them."


def test_a_fork_hears_its_past_and_has_called_nothing_in_it(log):
    """What the parent's tools gave back is a message; its own open call is not answered by it."""
    path = log("turns")
    events = read(path, "01fork")
    assert [e.type for e in events] == ["session.start", "llm.request", "llm.response"]
    assert ("tool", "3") in messages(events)
    fork = next(s for s in SOURCE.scan(path, None).sessions if s.session_id == "01fork")
    assert (fork.parent, fork.status, [t.finished for t in fork.tools]) == ("01t", None, [False])


def test_a_call_in_both_tables_is_told_once(log):
    """The newer table wins, and rows without an id are nobody's."""
    path = log("both-tables")
    [session] = SOURCE.scan(path, None).sessions
    assert sorted(record.key for record in session.records) == ["01one", "01two"]
    assert sum(e.type == "llm.response" for e in read(path)) == 2


def test_wrong_numbers_are_named_with_their_row(log):
    """A negative count, a fraction and a word are three problems; null is none."""
    problems = SOURCE.scan(log("hostile"), None).problems
    assert sorted(p.detail.split(":")[0] for p in problems.first) == ["01b", "01c", "01d"]
    assert {p.kind for p in problems.first} == {"bad_number"}


def test_sessions_are_named_without_reading_them(log):
    """Both generations, each id once."""
    assert list(SOURCE.name_sessions(log("turns"))) == ["01fork", "01t"]


def test_an_unknown_session_has_no_events(log):
    """Asking for a session that is not there is no error."""
    assert read(log("turns"), "nobody") == []


def test_what_is_no_database_says_so(tmp_path):
    """A log that cannot be opened at all is the one thing that raises."""
    path = tmp_path / "logs.db"
    path.write_bytes(b"SQLite format 3\x00 and then nothing")
    with pytest.raises(LogNotReadable):
        SOURCE.scan(str(path), None)


def test_a_database_damaged_in_the_middle_gives_a_problem(log):
    """What could be read stays; the damage is named."""
    path = log("turns")
    content = bytearray(Path(path).read_bytes())
    for page in range(1, len(content) // 4096):
        content[page * 4096 : page * 4096 + 8] = b"\xff" * 8
    Path(path).write_bytes(content)
    scan = SOURCE.scan(path, None)
    assert [p.kind for p in scan.problems.first] == ["bad_database"]
    assert [item.kind for item in SOURCE.read(path, "01t") if isinstance(item, Problem)] == ["bad_database"]


def test_the_log_is_left_as_it_was(log):
    """No file appears beside it, and no byte changes."""
    path = log("turns")
    before = Path(path).read_bytes()
    SOURCE.scan(path, None)
    read(path)
    assert Path(path).read_bytes() == before
    assert not [name for name in ("-wal", "-shm", "-journal") if os.path.exists(path + name)]


def test_an_answer_ends_no_later_than_time_does():
    """A start and a duration that do not fit 64 bits together end at what does."""
    row = Row(id="r", session="s", datetime_utc="2261-12-31T23:59:59Z", duration_ms=9e11)
    (answer,) = [step for step in steps(row, State()) if isinstance(step, Response)]
    assert answer.time == 2**63 - 1


def test_odd_names_of_calls_are_none():
    """A call's id may be nested deeper than anything can spell, and is none then."""
    deep = []
    for _ in range(1100):
        deep = [deep]
    part = {"type": "tool_call", "tool_call_id": deep, "name": "t"}
    assert list(tools_in([{"parts": [part]}], "tool_call")) == [("t", part)]
