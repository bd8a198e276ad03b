"""opencode, and Kilo and MiMo Code, which store the same: three shapes, copies everywhere, and databases that break."""

import json
import os
import random
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.errors import LogNotReadable, Problem
from sessionlog.events.envelope import Event
from sessionlog.ledger.book import Book
from sessionlog.pricing.book import PriceBook
from sessionlog.reader import database
from sessionlog.sources import kilo, mimo
from sessionlog.sources.opencode import SOURCE, State, steps
from sessionlog.sources.opencode_rows import Message, Part, Row, SessionFacts
from sessionlog.sources.steps import Prompt, Response
from sessionlog.sources.typed import Typed
from tests.profiles import examples
from tests.sources.homes import build_home, cases_of, environment

DATA = ".local/share/opencode"
COUNTS = ("input", "output", "cache_read", "cache_write", "reasoning")


@pytest.fixture(scope="module")
def prices():
    """The price list."""
    return PriceBook.load()


def logs_of(case, folder, source=SOURCE):
    """The logs of a case, as its agent left them."""
    home = build_home(case, folder)
    places = source.locate(environment(case, home))
    return [log for place in places if os.path.exists(place) for log in source.list_logs(place)]


def only_log(case, folder):
    """The one log of a case."""
    (log,) = logs_of(case, folder)
    return log


def events_of(log, session_id=None, source=SOURCE):
    """The events of a session, problems left out."""
    return [item for item in source.read(log, session_id) if isinstance(item, Event)]


def make_database(path, messages=1, padding=0):
    """A database of one session with some messages; returns its path."""
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE session(id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT, time_created INTEGER);"
        "CREATE TABLE message(id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);"
        "INSERT INTO session VALUES('s', NULL, '/w', 1767312000000);"
    )
    for number in range(messages):
        data = {
            "role": "assistant", "modelID": "m", "providerID": "p", "tokens": {"input": 1, "output": 1},
            "pad": "x" * padding, "time": {"created": 1767312000000 + number},
        }  # fmt: skip
        connection.execute("INSERT INTO message VALUES(?, 's', ?, ?)", (f"m{number:05}", number, json.dumps(data)))
    connection.commit()
    connection.close()
    return str(path)


def test_logs_are_where_variables_xdg_and_platforms_put_them():
    """The agent's own variable wins; a database can be named beside it."""
    assert f"/h/{DATA}" in SOURCE.locate({"HOME": "/h"})
    assert next(iter(SOURCE.locate({"HOME": "/h", "XDG_DATA_HOME": "/x"}))) == "/x/opencode"
    assert list(SOURCE.locate({"HOME": "/h", "OPENCODE_DATA_DIR": "/d"})) == ["/d"]
    assert list(SOURCE.locate({"OPENCODE_DATA_DIR": "/d", "OPENCODE_DB": "mine.db"})) == ["/d/mine.db", "/d"]
    assert list(kilo.SOURCE.locate({"KILO_DATA_DIR": "/k"})) == ["/k"]
    assert list(mimo.SOURCE.locate({"MIMOCODE_HOME": "/m"})) == ["/m"]


def test_every_channel_is_listed_and_snapshots_are_not(tmp_path):
    """Databases of other names and copies in snapshots are nobody's logs."""
    names = [os.path.basename(log) for log in logs_of("opencode/channels", tmp_path)]
    assert names == ["opencode-beta.db", "opencode-local.db", "opencode.db"]


def test_a_folder_of_a_session_is_one_log(tmp_path):
    """Legacy sessions are listed by their folders, from any folder above or at them."""
    log = only_log("opencode/legacy-files", tmp_path)
    assert log.endswith("storage/message/ses_l")
    assert list(SOURCE.list_logs(log)) == [log]
    assert list(SOURCE.list_logs(os.path.dirname(log))) == [log]
    assert SOURCE.recognises(log, b"")
    assert not kilo.SOURCE.recognises(log, b"")


def test_links_in_a_circle_are_cut(tmp_path):
    """A folder that holds itself is listed once."""
    make_database(tmp_path / "opencode.db")
    (tmp_path / "again").symlink_to(tmp_path)
    assert list(SOURCE.list_logs(str(tmp_path))) == [str(tmp_path / "opencode.db")]


def test_a_database_is_recognised_by_its_tables_and_told_apart_by_its_name(tmp_path):
    """Kilo's is not opencode's, and neither is anybody else's."""
    head = b"SQLite format 3\x00"
    own, kilos = make_database(tmp_path / "opencode.db"), make_database(tmp_path / "kilo.db")
    assert SOURCE.recognises(own, head)
    assert not kilo.SOURCE.recognises(own, head)
    assert kilo.SOURCE.recognises(kilos, head)
    assert not SOURCE.recognises(kilos, head)
    assert not SOURCE.recognises(own, b'{"type":"session"}')
    other = sqlite3.connect(tmp_path / "logs.db")
    other.executescript("CREATE TABLE responses(id TEXT);")
    other.close()
    assert not SOURCE.recognises(str(tmp_path / "logs.db"), head)
    (tmp_path / "torn.db").write_bytes(head + b"\xff" * 500)
    assert not SOURCE.recognises(str(tmp_path / "torn.db"), head)


@pytest.mark.parametrize("case", [*cases_of("opencode"), *cases_of("kilo"), *cases_of("mimo")])
def test_scan_and_events_agree_on_every_token(case, tmp_path, prices):
    """What the sessions of a log tell sums to what its scan counts, without what is only in their own sums."""
    source = {"kilo": kilo.SOURCE, "mimo": mimo.SOURCE}.get(case.split("/")[0], SOURCE)
    for log in logs_of(case, tmp_path, source):
        book = Book(prices)
        book.add_scan(source.scan(log, None))
        sums = ", ".join(f"COALESCE(SUM({name}), 0)" for name in COUNTS)
        [counted] = book.query(f"SELECT COALESCE(SUM(requests), 0), {sums} FROM records WHERE NOT summed", {})
        responses = [
            event.data
            for session_id in source.name_sessions(log)
            for event in events_of(log, session_id, source)
            if event.type == "llm.response"
        ]
        told = [sum(data.get("usage", {}).get(name, 0) for data in responses) for name in COUNTS]
        assert tuple(counted) == (len(responses), *told)


def test_a_record_has_price_time_and_latency(tmp_path):
    """A cost of 0 is unknown, a recorded one is kept; an answer ends when its last tool begins, or when it is complete."""
    (session,) = SOURCE.scan(only_log("opencode/v1-database", tmp_path), None).sessions
    first, second = session.records
    assert (first.cost_nano, second.cost_nano) == (20_000_000, None)
    assert (first.latency_ms, second.latency_ms) == (2000, 3000)
    assert (first.time_ns, second.time_ns) == (1_767_312_003_000_000_000, 1_767_312_009_000_000_000)
    assert (first.version, session.project) == ("1.2.10", "/w/api")


def test_tools_have_durations_errors_and_sizes(tmp_path):
    """What a part tells of a tool call."""
    (session,) = SOURCE.scan(only_log("opencode/v1-database", tmp_path), None).sessions
    tools = {tool.tool: (tool.failed, tool.duration_ms, tool.output_bytes) for tool in session.tools}
    assert tools == {"bash": (False, 1000, 9), "read": (True, 100, 14)}


def test_sub_agents_are_part_of_their_first_ancestor(tmp_path):
    """Whatever lies between; a prompt of the agent's own is no turn."""
    (session,) = SOURCE.scan(only_log("opencode/sub-agents", tmp_path), None).sessions
    assert (session.session_id, session.part, session.turns) == ("ses_r", False, 1)
    assert [record.agent for record in session.records] == ["main", "explore", "general", "main"]


def test_a_session_reads_as_a_conversation(tmp_path):
    """Prompt, reasoning, calls with their results, answer, end."""
    log = only_log("opencode/v1-database", tmp_path)
    assert list(SOURCE.name_sessions(log)) == ["ses_a"]
    events = events_of(log, "ses_a")
    assert [event.type for event in events] == [
        "session.start", "llm.request", "llm.response", "tool.call", "tool.call", "llm.request", "llm.response",
        "session.end",
    ]  # fmt: skip
    assert [event.seq for event in events] == list(range(8))
    assert events[1].data["messages"] == [{"role": "user", "content": "Fix the login"}]
    assert events[2].data["reasoning"] == "Look first."
    assert events[2].data["usage"]["output"] == 57
    assert (events[3].data["output"], events[3].data["duration_ms"]) == ("login.py\n", 1000)
    assert events[4].data["error"] == "File not found"
    assert events[-1].data["status"] == "success"


def test_a_fork_hears_its_past_and_answers_once(tmp_path):
    """Copied answers are history of the fork, not responses of its own."""
    log = only_log("opencode/fork", tmp_path)
    for session_id in ("ses_1", "ses_2"):
        assert sum(event.type == "llm.response" for event in events_of(log, session_id)) == 1
    request = next(event for event in events_of(log, "ses_2") if event.type == "llm.request")
    assert [message["content"] for message in request.data["messages"]] == ["Refactor it", "Now in Rust"]


def test_a_sub_agent_answers_beside_the_conversation(tmp_path):
    """No request of the main agent sends what its sub-agents said."""
    events = events_of(only_log("opencode/sub-agents", tmp_path))
    asides = [event.data.get("agent") for event in events if event.type == "llm.response"]
    assert asides == [None, "explore", "general", None]
    assert sum(event.type == "llm.request" for event in events) == 2


def test_an_unfinished_answer_is_no_response(tmp_path):
    """Words of a message that has just been begun are told, and counted nowhere."""
    events = events_of(only_log("opencode/errors", tmp_path), "ses_n")
    assert [event.type for event in events] == ["session.start", "llm.delta"]


def test_errors_and_aborts_end_a_session(tmp_path):
    """The words of the error are kept; an abort by the user is none."""
    log = only_log("opencode/errors", tmp_path)
    assert events_of(log, "ses_e")[-1].data == {"status": "error", "error": "Overloaded"}
    assert events_of(log, "ses_x")[-1].data["status"] == "cancelled"
    assert "error" not in events_of(log, "ses_x")[2].data


def test_an_unknown_schema_is_named_with_what_was_expected(tmp_path):
    """Nobody must wonder why a database gives nothing."""
    scan = SOURCE.scan(only_log("opencode/unknown-schema", tmp_path), None)
    (problem,) = scan.problems.first
    assert (problem.kind, scan.resume) == ("unknown_version", None)
    assert "session_message(id, session_id, type, data)" in problem.detail


def test_a_database_damaged_in_the_middle_gives_what_can_be_read(tmp_path):
    """The rows before the damage stay, and the damage is named."""
    path = make_database(tmp_path / "opencode.db", messages=400, padding=500)
    content = bytearray((tmp_path / "opencode.db").read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 4096] = b"\xaa" * 4096
    (tmp_path / "opencode.db").write_bytes(content)
    scan = SOURCE.scan(path, None)
    assert "bad_database" in {problem.kind for problem in scan.problems.first}
    problems = [item for item in SOURCE.read(path, None) if isinstance(item, Problem)]
    assert "bad_database" in {problem.kind for problem in problems}


@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
def test_reading_leaves_no_trace(journal, tmp_path):
    """No file appears, none changes, with a writer's log beside the database or without."""
    path = make_database(tmp_path / "opencode.db", messages=3)
    writer = sqlite3.connect(path)
    writer.execute(f"PRAGMA journal_mode = {journal}")
    later = "REPLACE(data, '1767312000000', '1767312000999')"
    writer.execute(f"INSERT INTO message SELECT 'new', session_id, time_created, {later} FROM message LIMIT 1")
    writer.commit()
    before = {entry.name: (entry.stat().st_mtime_ns, entry.stat().st_size) for entry in os.scandir(tmp_path)}
    (session,) = SOURCE.scan(path, None).sessions
    assert len(session.records) == 4
    assert list(SOURCE.name_sessions(path)) == ["s"]
    assert events_of(path)
    after = {entry.name: (entry.stat().st_mtime_ns, entry.stat().st_size) for entry in os.scandir(tmp_path)}
    writer.close()
    assert after == before


def test_a_locked_database_is_reported(tmp_path, monkeypatch):
    """A writer that lets nobody in makes the log unreadable, by name."""
    monkeypatch.setitem(database.open_database.__kwdefaults__, "wait_seconds", 0.0)
    path = make_database(tmp_path / "opencode.db")
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA locking_mode = EXCLUSIVE")
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("UPDATE session SET directory = '/x'")
    writer.commit()
    with pytest.raises(LogNotReadable, match=r"opencode\.db"):
        SOURCE.scan(path, None)
    writer.close()


@pytest.mark.parametrize("case", ["opencode/v1-database", "opencode/v2-tables", "opencode/hostile"])
def test_damage_never_raises(case, tmp_path):
    """Whatever bytes a database has: rows, problems, or a log that cannot be opened."""
    log = only_log(case, tmp_path)
    with open(log, "rb") as file:
        content = file.read()
    chance = random.Random(7)
    for _ in range(25):
        damaged = bytearray(content)
        for _ in range(chance.randint(1, 60)):
            damaged[chance.randrange(100, len(damaged))] = chance.randrange(256)
        with open(log, "wb") as file:
            file.write(damaged)
        try:
            SOURCE.scan(log, None)
            for session_id in (*SOURCE.name_sessions(log), None):
                list(SOURCE.read(log, session_id))
        except LogNotReadable:
            continue
    assert SOURCE.recognises(log, b"") is False


def test_sessions_of_other_agents_are_left_to_their_own_logs(tmp_path):
    """What MiMo Code has taken over is not counted a second time."""
    (log,) = logs_of("mimo/taken-over", tmp_path, mimo.SOURCE)
    assert list(mimo.SOURCE.name_sessions(log)) == ["ses_own"]
    assert [session.session_id for session in mimo.SOURCE.scan(log, None).sessions] == ["ses_own"]


def rows_of(*parts, role="user", **data):
    """A message as its log gives it."""
    message = Typed(Message).fit({"role": role, **data})
    return Row("m", role, message, Typed(list[Part]).fit(list(parts)), SessionFacts("s"), "s")


def test_opencode_s_own_words_are_no_prompt():
    """It goes on after a compaction by asking itself."""
    own, typed = {"type": "text", "text": "Continue", "synthetic": True}, {"type": "text", "text": "and this"}
    prompts = [[step for step in steps(rows_of(*parts), State()) if isinstance(step, Prompt) and step.text]
               for parts in ([own], [own, typed])]  # fmt: skip
    assert [[(prompt.role, prompt.text) for prompt in one] for one in prompts] == [
        [("system", "Continue")],
        [("user", "and this"), ("system", "Continue")],
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.sampled_from(("text", "tool", "error")),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(("type", "text", "state", "status", "output", "content", "time", "created", "completed", "start",
                         "input", "cache", "read", "total", "data", "message", "name", "cwd", "id")),
        inner, max_size=4,
    ),
)  # fmt: skip


@given(
    st.sampled_from(("user", "assistant", "compaction", "")),
    st.lists(st.dictionaries(st.sampled_from(Part.__struct_fields__), JSON), max_size=3),
    st.dictionaries(st.sampled_from(Message.__struct_fields__), JSON),
)
@examples(150)
def test_whatever_is_stored_means_something(role, parts, data):
    """No JSON raises."""
    assert list(steps(rows_of(*parts, **{**data, "role": role}), State()))


def test_the_output_includes_the_reasoning_where_the_total_says_so():
    """Until 1.3.2 it does; without a total it does not."""
    counts = {"input": 100, "output": 50, "reasoning": 20, "cache": {"read": 30, "write": 0}}
    found = []
    for total in ({"total": 180}, {"total": 200}, {}):
        row = rows_of(role="assistant", tokens={**counts, **total})
        (answer,) = [step for step in steps(row, State()) if isinstance(step, Response)]
        found.append((answer.tokens.usage.output, answer.tokens.usage.reasoning))
    assert found == [(50, 20), (70, 20), (70, 20)]


def test_the_folder_of_a_sub_agent_reads_as_its_conversation(tmp_path):
    """It has a name of its own, so that the parent's names the parent's folder."""
    logs = logs_of("opencode/legacy-sub-agent", tmp_path)
    assert [list(SOURCE.name_sessions(log)) for log in logs] == [["ses_p/ses_k"], ["ses_p"]]
    for name in (None, "ses_p/ses_k"):
        assert [event.type for event in events_of(logs[0], name)][:3] == [
            "session.start",
            "llm.request",
            "llm.response",
        ]


def test_a_fork_names_the_session_that_it_was_copied_from(tmp_path):
    """The table does not; its copies are older than itself and begin no turn."""
    parent, fork = SOURCE.scan(only_log("opencode/fork", tmp_path), None).sessions
    assert (parent.parent, fork.parent) == ("", "ses_1")
    assert (parent.turns, fork.turns, len(fork.records)) == (1, 1, 1)


def test_a_fork_of_a_fork_was_forked_from_that_fork(tmp_path):
    """The last message that it has copied was made there."""
    log = only_log("opencode/fork", tmp_path)
    with sqlite3.connect(log) as connection:
        connection.execute(
            "INSERT INTO session SELECT 'ses_0', project_id, NULL, directory, title, version, "
            "1767312200000, 1767312200000 FROM session WHERE id = 'ses_2'"
        )
        connection.execute(
            "INSERT INTO message SELECT 'z' || id, 'ses_0', time_created, time_updated, data "
            "FROM message WHERE session_id = 'ses_2'"
        )
        connection.execute(
            "INSERT INTO message SELECT 'own', 'ses_0', 1767312300000, 0, "
            "REPLACE(data, '17673121', '17673123') FROM message WHERE id = 'msg_b4'"
        )
    connection.close()
    parents = {session.session_id: session.parent for session in SOURCE.scan(log, None).sessions}
    assert parents == {"ses_1": "", "ses_2": "ses_1", "ses_0": "ses_2"}


def test_the_rest_has_no_cost_where_a_message_has_none(tmp_path):
    """The cost of all of a session would count a second time what is estimated for its messages."""
    log = only_log("opencode/v2-compaction-and-title", tmp_path)
    with sqlite3.connect(log) as connection:
        connection.execute("UPDATE session_message SET data = REPLACE(data, '\"cost\":0.05', '\"cost\":0')")
    connection.close()
    (session,) = SOURCE.scan(log, None).sessions
    assert [record.cost_nano for record in session.records] == [10_000_000, None, 12_500_000, 10_000_000, None]


def test_a_copy_whose_original_is_gone_counts(tmp_path):
    """Then the fork alone has the answer."""
    log = only_log("opencode/fork", tmp_path)
    with sqlite3.connect(log) as connection:
        connection.execute("DELETE FROM message WHERE session_id = 'ses_1'")
    connection.close()
    (session,) = SOURCE.scan(log, None).sessions
    assert (session.session_id, len(session.records), session.parent) == ("ses_2", 2, "")
