"""A large log is scanned in the memory of a small one, and gives the same."""

import json
from itertools import groupby

import pytest

from sessionlog.analytics.sessions import list_sessions
from sessionlog.analytics.tools import aggregate_tools
from sessionlog.analytics.usage import aggregate_usage
from sessionlog.events.tokens import TokenUsage
from sessionlog.sources import fold_events, fold_usage, kit, spool
from sessionlog.sources.fold_usage import SessionState
from sessionlog.sources.record import Record
from sessionlog.sources.registry import load_source
from tests.reliability import traps

FOLDS = ("_HELD", "_HELD_SESSIONS", "_HELD_LAST")


@pytest.fixture
def little_room(monkeypatch):
    """Hardly anything is held in memory."""

    def apply(held=7):
        for name in FOLDS:
            monkeypatch.setattr(fold_usage, name, held)
        monkeypatch.setattr(spool, "_BATCH", 3)

    return apply


def reports(folder):
    """What is said of some logs."""
    usage = aggregate_usage(folder, by=("session", "model"))
    return usage.to_dict(), list_sessions(folder).to_dict(), aggregate_tools(folder).to_dict()


@pytest.mark.parametrize(
    ("make", "count"),
    [
        (traps.native_responses, 50),
        (traps.native_conversation, 100),
        (traps.claude_sessions, 60),
        (traps.claude_conversation, 60),
        (traps.codex_conversation, 90),
    ],
)
def test_reports_are_the_same_with_little_room(tmp_path, little_room, make, count):
    """Records, calls and sessions that were put aside count as those in memory do."""
    make(tmp_path, count)
    before = reports(tmp_path)
    assert before[0]["totals"]["requests"] > 20
    little_room()
    assert reports(tmp_path) == before


def test_what_ends_add_is_the_same_with_little_room(tmp_path, little_room):
    """An end's tokens and cost are spread over all responses of its run, wherever these are."""
    usage = '"usage":{"input":10,"output":%d}'
    lines = [traps._start("s")]
    for seq in range(1, 40):
        data = "{" + usage % seq + (',"cost_usd":0.5}' if seq % 5 == 0 else "}")
        lines.append(f'{{"session_id":"s","seq":{seq},"type":"llm.response","ts":"{traps._stamp(seq)}","data":{data}}}')
        if seq in {17, 33}:
            end = '{"status":"success","tokens":{"input":900,"output":900},"cost_usd":40,"duration_ms":5}'
            lines.append(
                f'{{"session_id":"s","seq":{seq},"type":"session.end","ts":"{traps._stamp(seq)}","data":{end}}}'
            )
    (tmp_path / "s.jsonl").write_text("\n".join(lines) + "\n")
    source = load_source("native")
    [before] = source.scan(str(tmp_path / "s.jsonl"), None).sessions
    little_room()
    [session] = source.scan(str(tmp_path / "s.jsonl"), None).sessions
    assert len(session.records) == len(before.records) == len(list(session.records))
    assert list(session.records) == list(before.records)
    assert sum(record.cost_nano or 0 for record in session.records) == 80_500_000_000


def test_a_spool_gives_back_what_was_put(tmp_path):
    """Also half a character, and numbers beyond 64 bits."""
    kept = spool.Spool()
    records = [
        Record(time_ns=n, provider="p", model="\ud800", response_model=None, usage=TokenUsage(), cost_nano=n << 64)
        for n in range(3)
    ]
    kept.put([("\ud800", "records", records), ("b", "records", records[:1])])
    assert list(kept.items("\ud800", "records", Record)) == records
    assert list(kept.items("none", "records", Record)) == []
    kept.put_sessions([("a", True, SessionState("a")), ("b", False, SessionState("b"))])
    assert kept.has_marked()
    assert kept.take_session("a", SessionState).id == "a"
    assert kept.take_session("a", SessionState) is None
    assert [one.id for one in kept.sessions(SessionState)] == ["b"]
    assert not kept.has_marked()


def test_no_room_for_a_spool_is_no_failure(tmp_path, little_room, monkeypatch):
    """A full disk costs memory, and no records."""
    traps.claude_sessions(tmp_path, 60)
    before = reports(tmp_path)
    little_room()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(spool.Spool, "_write", fail)
    assert reports(tmp_path) == before


@pytest.mark.parametrize(
    ("source", "make"), [("claude-code", traps.claude_conversation), ("codex", traps.codex_conversation)]
)
def test_a_long_log_is_replayed_as_a_short_one(tmp_path, monkeypatch, source, make):
    """It is scanned only some megabytes ahead, and every response has its numbers."""
    make(tmp_path, 600)
    [log] = tmp_path.rglob("*.jsonl")
    before = list(load_source(source).read(str(log), None))
    assert len(before) > 300
    monkeypatch.setattr(kit, "LONG", 0)
    monkeypatch.setattr(kit, "LOOK_AHEAD", 5000)
    assert list(load_source(source).read(str(log), None)) == before


def test_answers_of_sub_agents_outlast_those_of_a_long_log(tmp_path, monkeypatch):
    """Their records are known before the log is read, and wait for their turn however many of its own it takes."""
    traps.claude_conversation(tmp_path, 600)
    [log] = tmp_path.rglob("*.jsonl")
    row = json.loads(log.read_text().splitlines()[-1])
    row |= {"isSidechain": True, "agentId": "a1"}
    row["message"] |= {"id": "msg_of_the_sub_agent"}
    beside = log.with_suffix("") / "subagents/agent-a1.jsonl"
    beside.parent.mkdir(parents=True)
    beside.write_text(json.dumps(row) + "\n")
    before = list(load_source("claude-code").read(str(log), None))
    assert "sub-agent" in {event.data.get("agent") for event in before if event.type == "llm.response"}
    monkeypatch.setattr(kit, "LONG", 0)
    monkeypatch.setattr(kit, "LOOK_AHEAD", 5000)
    monkeypatch.setattr(fold_events, "_MOST_KNOWN", 100)
    assert list(load_source("claude-code").read(str(log), None)) == before


def test_the_first_event_of_a_long_log_does_not_wait_for_its_end(tmp_path, monkeypatch):
    """Reading goes on as events are asked for."""
    traps.claude_conversation(tmp_path, 2000)
    [log] = tmp_path.rglob("*.jsonl")
    monkeypatch.setattr(kit, "LONG", 0)
    monkeypatch.setattr(kit, "LOOK_AHEAD", 5000)
    taken = []
    take = fold_usage.UsageFold._response
    monkeypatch.setattr(fold_usage.UsageFold, "_response", lambda fold, step: (taken.append(step), take(fold, step)))
    events = load_source("claude-code").read(str(log), None)
    assert [kind for kind, _ in groupby(next(events).type for _ in range(3))] == [
        "session.start", "llm.request", "llm.response",
    ]  # fmt: skip
    assert len(taken) < 50
