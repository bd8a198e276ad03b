"""Watching: what is running, how fast, what happened last; only what is new is read and asked."""

import json
import os

import pytest

from sessionlog.analytics.budgets.rules import parse_budgets
from sessionlog.analytics.usage import aggregate_usage
from sessionlog.analytics.watch import watching
from sessionlog.analytics.watch.snapshot import STEPS
from sessionlog.analytics.watch.sums import MOST_EVENTS
from sessionlog.analytics.window import UsageWindow
from sessionlog.ledger.schema import RUNNING_NS
from tests.analytics.watch.watch_world import MINUTE, MODEL, Machine
from tests.ledger.entries import NOON, PRICES, SECOND


@pytest.fixture
def machine(tmp_path):
    """An empty home."""
    return Machine(tmp_path)


def test_a_running_session(machine):
    """What it used so far and in the last minutes, and how full its window is."""
    machine.write("s-1", 800, "bash", 30_000, before=2 * MINUTE)
    with machine.watcher() as watcher:
        seen = watcher.snapshot(NOON)
    [one] = seen.sessions
    assert (one.source, one.session, one.model, one.project) == ("native", "s-1", MODEL, "/src/api")
    assert (one.turns, one.requests, one.total_tokens, one.cost_nano) == (1, 2, 30_820, SECOND)
    assert (one.context_tokens, one.context_window, one.context_percent) == (30_000, 200_000, 15.0)
    assert (one.pace.requests, one.pace.total_tokens, one.pace.minutes) == (2, 30_820, 4.5)
    assert (one.pace.tokens_per_minute, one.pace.cost_per_minute) == (30_820 / 4.5, 1 / 4.5)
    assert sum(one.pace.steps) == 30_820
    assert seen.totals == one.pace


def test_only_what_is_running_has_a_row(machine):
    """What has ended, or says nothing for ten minutes, is over; in the totals of the window it still counts."""
    machine.write("s-running", 100)
    machine.write("s-ended", 200, end="success")
    machine.write("s-silent", 400, before=11 * MINUTE)
    with machine.watcher() as watcher:
        seen = watcher.snapshot(NOON)
        later = watcher.snapshot(NOON + 9 * MINUTE)
    assert [one.session for one in seen.sessions] == ["s-running"]
    assert (seen.totals.requests, seen.totals.total_tokens) == (2, 320)
    assert seen.pace == seen.sessions[0].pace
    assert (later.sessions, later.totals.total_tokens, later.totals.cost_nano) == ((), 0, None)


def test_the_pace_of_all_that_run_is_the_sum_of_theirs(machine):
    """Of one window for all of them, however young they are."""
    machine.write("s-old", 800, before=4 * MINUTE)
    machine.write("s-young", 30, before=20 * SECOND)
    machine.write("s-ended", 5000, before=MINUTE, end="success")
    with machine.watcher() as watcher:
        seen = watcher.snapshot(NOON)
    assert {one.pace.minutes for one in seen.sessions} == {seen.pace.minutes} == {4.5}
    assert seen.pace.total_tokens == sum(one.pace.total_tokens for one in seen.sessions) == 850
    assert seen.to_dict()["running"]["total_tokens"] == 850


def test_a_session_ends_by_the_clock_alone(machine):
    """Nothing is written, and still it is not running for ever."""
    machine.write("s-1", 100, before=MINUTE)
    with machine.watcher() as watcher:
        first = watcher.snapshot(NOON)
        last_ns = first.sessions[0].last_ns
        assert watcher.snapshot(last_ns + RUNNING_NS - 1).sessions
        assert not watcher.snapshot(last_ns + RUNNING_NS).sessions


def test_the_last_events(machine):
    """Newest first: what was answered and called, what failed, who began and ended."""
    machine.write("s-1", 800, "bash!", "read", end="error")
    with machine.watcher() as watcher:
        events = watcher.snapshot(NOON).events
    assert [(one.kind, one.name, one.failed) for one in events] == [
        ("end", "error", True), ("tool", "read", False), ("tool", "bash", True), ("response", MODEL, False),
        ("start", "", False),
    ]  # fmt: skip
    assert (events[3].tokens, events[3].cost_nano) == ((800, 10), SECOND // 2)
    assert [one.time_ns for one in events] == sorted((one.time_ns for one in events), reverse=True)


def test_a_session_without_a_response_is_shown(machine):
    """It runs, it calls tools and it ends, also before, or without, any request to a model."""
    machine.write("s-runs", "bash")
    machine.write("s-ended", end="success")
    with machine.watcher() as watcher:
        seen = watcher.snapshot(NOON)
    assert [(one.session, one.requests, one.cost_is_partial) for one in seen.sessions] == [("s-runs", 0, False)]
    assert {(one.session, one.kind) for one in seen.events} == {
        ("s-runs", "start"), ("s-runs", "tool"), ("s-ended", "start"), ("s-ended", "end"),
    }  # fmt: skip
    assert (seen.pace.requests, seen.pace.cost_is_partial) == (0, False)


def test_no_more_events_than_a_screen_takes(machine):
    """However many there were."""
    machine.write("s-1", *range(1, 60), *["bash"] * 60, before=5 * MINUTE)
    with machine.watcher() as watcher:
        events = watcher.snapshot(NOON).events
    assert len(events) == MOST_EVENTS
    assert {one.kind for one in events} == {"tool"}


def test_filters(machine):
    """Of one agent, or of one project; what is left out is in no part of the picture but the budgets."""
    machine.write("s-api", 100, work_dir="/src/api")
    machine.write("s-site", 200, "bash", work_dir="/src/site")
    with machine.watcher(filters={"project": ["*/SITE"], "source": ["native"]}) as watcher:
        seen = watcher.snapshot(NOON)
    assert [one.session for one in seen.sessions] == ["s-site"]
    assert seen.totals.total_tokens == 210
    assert {one.session for one in seen.events} == {"s-site"}
    with machine.watcher(filters={"source": ["codex"]}) as watcher:
        seen = watcher.snapshot(NOON)
    assert (seen.sessions, seen.events, seen.totals.total_tokens) == ((), (), 0)


def test_of_a_log_that_grows_only_the_rest_is_read(machine):
    """And nothing of the others."""
    machine.write("s-1", *range(1, 100), before=5 * MINUTE)
    machine.write("s-2", 5)
    with machine.watcher() as watcher:
        before = watcher.snapshot(NOON).sessions[-1]
        read = (machine.logs / "s-1.jsonl").stat().st_size
        machine.write("s-1", 7, before=MINUTE)
        for name in ("s-1", "s-2"):
            os.utime(machine.logs / f"{name}.jsonl", (1_700_000_000, 1_700_000_000))
        after = watcher.snapshot(NOON, scanner=machine.scan).sessions[-1]
    assert (before.session, after.requests - before.requests, after.total_tokens - before.total_tokens) == (
        "s-1",
        1,
        17,
    )
    jobs = {job.path: (job, scanned) for job, scanned in machine.jobs}
    job, scanned = jobs[str(machine.logs / "s-1.jsonl")]
    assert (job.resume.offset, scanned.from_start) == (read, False)
    assert sum(len(one.records) for one in scanned.scan.sessions) - scanned.scan.replaced_count == 1


def test_what_did_not_change_is_not_asked_again(machine, monkeypatch):
    """While no log is written and the window is the same nothing is asked but whether that is so."""
    machine.write("s-1", 100, before=MINUTE)
    for path in machine.home.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    asked = []
    find = watching.find_running
    monkeypatch.setattr(watching, "find_running", lambda *given: asked.append(1) or find(*given))
    with machine.watcher() as watcher:
        first = watcher.snapshot(NOON)
        second = watcher.snapshot(NOON + 20 * SECOND)
        assert len(asked) == 1
        assert (first.totals.minutes, second.totals.minutes) == (4.5, 4.5 + 20 / 60)
        watcher.snapshot(NOON + 30 * SECOND)
        assert len(asked) == 2


def test_another_process_writes_to_the_ledger(machine):
    """Its commit is seen, though the logs it read are not read again."""
    machine.write("s-1", 100)
    with machine.watcher() as one, machine.watcher() as other:
        one.snapshot(NOON)
        machine.write("s-1", 100, before=MINUTE)
        other.snapshot(NOON)
        assert one.snapshot(NOON).sessions[0].requests == 2


def test_a_log_from_the_future(machine):
    """What is later than now is not in the window, and comes into it when its time has come."""
    machine.write("s-1", 100, before=MINUTE)
    machine.write("s-1", 100, before=-10 * SECOND)
    with machine.watcher() as watcher:
        assert watcher.snapshot(NOON).totals.requests == 1
        assert watcher.snapshot(NOON + 15 * SECOND).totals.requests == 2


# --- what is left


def test_budgets_are_those_of_the_user(machine):
    """As they are now, whatever is filtered."""
    machine.write("s-1", 100, before=MINUTE)
    rules = parse_budgets({"daily": {"usd": 5, "period": "day"}, "run": {"requests": 4, "per": "session"}})
    with machine.watcher(rules=rules, filters={"project": ["/nothing"]}) as watcher:
        daily, run = watcher.snapshot(NOON).budgets
        machine.write("s-1", 100, before=30 * SECOND)
        again, _ = watcher.snapshot(NOON).budgets
    assert (daily.name, daily.used, daily.percent, run.used) == ("daily", 0.5, 10.0, 1)
    assert again.used == 1.0


def test_budgets_may_change_while_they_are_watched(machine):
    """With a word on what cannot be used."""
    machine.write("s-1", 100, before=MINUTE)
    with machine.watcher() as watcher:
        assert (watcher.snapshot(NOON).budgets, watcher.snapshot(NOON).notes) == ((), ())
        watcher.set_budgets(parse_budgets({"daily": {"usd": 5, "period": "day"}}), ["typo: no such key"])
        seen = watcher.snapshot(NOON)
    assert [one.used for one in seen.budgets] == [0.5]
    assert seen.notes == ("typo: no such key",)


def codex_log(home, used, resets_ns):
    """A rollout of Codex in which the provider tells of its window."""
    folder = home / ".codex" / "sessions" / "2026" / "11" / "20"
    folder.mkdir(parents=True, exist_ok=True)
    thread = "019a0000-0001-7000-8000-000000000001"
    limits = {"primary": {"used_percent": used, "window_minutes": 300, "resets_at": resets_ns // SECOND}}
    usage = {"input_tokens": 50, "cached_input_tokens": 0, "output_tokens": 5, "total_tokens": 55}
    info = {"total_token_usage": usage, "last_token_usage": usage}
    rows = [
        {"type": "session_meta", "payload": {"id": thread, "cwd": "/src/x", "model_provider": "openai"}},
        {"type": "event_msg", "payload": {"type": "token_count", "info": info, "rate_limits": limits}},
    ]
    lines = [json.dumps({"timestamp": "2026-11-20T11:58:00.000Z", **row}) for row in rows]
    (folder / f"rollout-2026-11-20T11-58-00-{thread}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")


def test_what_providers_said(machine):
    """Until their window is over; only those of the agents that are asked about."""
    codex_log(machine.home, 72.0, NOON + MINUTE)
    with machine.watcher() as watcher:
        [word] = watcher.snapshot(NOON).limits
        assert (word.source, word.used_percent, word.resets_ns) == ("codex", 72.0, NOON + MINUTE)
        assert watcher.snapshot(NOON + MINUTE).limits == ()
    with machine.watcher(filters={"source": ["native"]}) as watcher:
        assert watcher.snapshot(NOON).limits == ()


# --- the document


def test_the_document(machine):
    """JSON with its schema; what is unknown is null."""
    machine.write("s-1", 100, "bash", before=MINUTE)
    with machine.watcher(rules=parse_budgets({"daily": {"usd": 5, "period": "day"}})) as watcher:
        document = json.loads(json.dumps(watcher.snapshot(NOON).to_dict()))
    assert document["schema"] == "sessionlog.watch/1"
    assert document["window"] == {"start": "2026-11-20T11:55:30.000000Z", "end": "2026-11-20T12:00:00.000000Z"}
    assert document["totals"]["running_sessions"] == len(document["sessions"]) == 1
    [one] = document["sessions"]
    assert (one["session"], one["requests"], one["total_tokens"], one["cost_usd"]) == ("s-1", 1, 110, 0.5)
    assert len(one["pace"]["tokens_by_step"]) == STEPS
    assert document["budgets"]["daily"]["used"] == 0.5
    assert [event["kind"] for event in document["events"]] == ["tool", "response", "start"]
    assert document["events"][0]["cost_usd"] is None


def test_nothing_at_all(machine):
    """No log, no session, no pace, and no cost that would be 0."""
    with machine.watcher() as watcher:
        seen = watcher.snapshot(NOON)
    assert (seen.sessions, seen.events, seen.totals.total_tokens, seen.totals.cost_per_minute) == ((), (), 0, None)


def test_totals_are_those_of_usage(machine):
    """The command's own, of the same window."""
    machine.write("s-1", 800, 30, "bash", before=4 * MINUTE)
    machine.write("s-2", 5, before=20 * MINUTE)
    machine.write("s-3", 7, 9, before=MINUTE, end="success")
    with machine.watcher() as watcher:
        seen = watcher.snapshot(NOON)
    window = UsageWindow(start_ns=seen.start_ns, end_ns=seen.now_ns)
    totals = aggregate_usage(window=window, env=machine.env, ledger=machine.ledger, prices=PRICES).totals
    assert (totals.requests, totals.total_tokens) == (seen.totals.requests, seen.totals.total_tokens)
    assert totals.known_nano == seen.totals.cost_nano
