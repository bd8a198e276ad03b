"""The demo's script: what it records is real, and everything that a report can show happens once."""

import os
import time
from datetime import datetime

import pytest

from sessionlog import Event, aggregate_usage, check_logs, list_sessions, read_events, scan_routing_quality
from sessionlog.demo import record_demo
from sessionlog.demo.agents import write_agents
from sessionlog.errors import NotRecorded
from sessionlog.events.times import parse_time
from tests.agreement import check_agreement

NOW = "2026-11-21T12:00:00Z"


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The folder and the id of the session worth replaying."""
    folder = tmp_path_factory.mktemp("demo")
    return folder, record_demo(str(folder), now_ns=parse_time(NOW))


@pytest.fixture(scope="module")
def agents(tmp_path_factory):
    """The home of three agents."""
    home = tmp_path_factory.mktemp("agents")
    write_agents(str(home), now_ns=parse_time(NOW))
    return str(home)


def test_the_agents_logs_are_read_as_their_own(agents):
    """Found as in any home: four sessions of three agents, whole, each with its prompt and a success."""
    listed = list_sessions(env={"HOME": agents, "SESSIONLOG_DIR": f"{agents}/none"}, now=datetime.fromisoformat(NOW))
    assert (listed.problem_count, listed.unrecognised) == (0, 0)
    assert sorted(one.source for one in listed.rows) == ["claude-code", "claude-code", "codex", "gemini"]
    assert {one.status for one in listed.rows} == {"success"}
    assert all(one.prompt and one.project.startswith("/home/you/src/") for one in listed.rows)
    by_source = {one.source: one for one in listed.rows}
    assert (by_source["codex"].total_tokens, by_source["codex"].requests) == (13_900 + 790, 2)
    assert (by_source["gemini"].total_tokens, by_source["gemini"].cache_read_tokens) == (8_930, 3_100)


def test_the_agents_are_equal_in_all_commands(agents, tmp_path):
    """The same requests, turns, tokens and cost."""
    check_agreement({"HOME": agents, "SESSIONLOG_DIR": f"{agents}/none"}, str(tmp_path / "ledger.sqlite"))


@pytest.fixture(scope="module")
def sessions(demo):
    """Its sessions by model, newest first."""
    listed = list_sessions(str(demo[0]), now=datetime.fromisoformat(NOW))
    assert listed.problem_count == 0
    return listed.rows


def one(sessions, **wanted):
    """The only session that is as wanted."""
    [found] = [s for s in sessions if all(getattr(s, name) == value for name, value in wanted.items())]
    return found


def events(path):
    """The events of a log."""
    return [item for item in read_events(path) if isinstance(item, Event)]


def test_every_log_is_whole(demo):
    """Six files, and not even a note about one of them."""
    checks = list(check_logs([str(demo[0])]))
    assert len(checks) == 6
    assert [(check.damage, check.notes) for check in checks] == [((), ())] * 6


def test_a_session_fails(sessions):
    """With the reason."""
    assert one(sessions, status="error").error == "rate limited (429)"
    assert one(sessions, status="error").failed_requests == 1


def test_a_killed_session_is_unfinished(sessions):
    """Its writer really was killed: the last event is the answer, and its tokens count."""
    killed = one(sessions, status="unfinished", counted=True)
    assert events(killed.path)[-1].type == "llm.response"
    assert (killed.models, killed.input_tokens, killed.output_tokens) == (("qwen3.6-27b",), 2210, 61)


def test_a_pin_is_rejected_and_costs_nothing(sessions):
    """It is listed, but there is no usage to count."""
    rejected = one(sessions, counted=False)
    assert (rejected.requests, rejected.total_tokens, rejected.cost_nano) == (0, 0, None)
    assert rejected.error == 'unknown model "gpt-9"'


def test_the_router_is_overridden_refused_and_fails_over(demo):
    """Everything that routing quality looks for."""
    scan = scan_routing_quality(str(demo[0]))
    assert (scan.total_requests, scan.total_overrides, scan.rejected_overrides) == (6, 1, 1)
    assert scan.override_disagreement_rate == 1
    assert scan.failovers["by_path"] == [{"providers": ["bedrock", "anthropic"], "count": 1}]


def test_caches_are_hit_and_prices_are_recorded_estimated_and_unknown(demo):
    """Each kind of cost has its row."""
    report = aggregate_usage(str(demo[0]))
    rows = {row.provider: row for row in report.rows if row.model != "claude-sonnet-4-5"}
    assert report.totals.sessions == 5
    assert report.totals.cache_hit_rate > 0.5
    assert rows["anthropic"].known_cost_usd == pytest.approx(0.136672)
    assert rows["anthropic"].estimated_cost_usd is None
    assert rows["vllm"].cost_usd is None
    assert report.totals.unknown_cost_sessions == 1
    [sonnet] = [row for row in report.rows if row.model == "claude-sonnet-4-5"]
    assert sonnet.known_cost_usd is None
    assert sonnet.estimated_cost_usd > 0


def test_the_session_worth_replaying_has_a_failed_tool(demo):
    """And answers, and an end."""
    recorded = events(os.path.join(demo[0], f"{demo[1]}.jsonl"))
    assert [event.type for event in recorded].count("llm.response") == 3
    assert [event.data.get("error") for event in recorded if event.type == "tool.call"] == [None, "exit 1"]
    assert recorded[-1].data["status"] == "success"


def test_the_same_present_gives_the_same_times(tmp_path):
    """The script has a clock of its own."""

    def times(folder):
        record_demo(str(folder), now_ns=parse_time(NOW))
        return sorted([event.ts for event in events(str(path))] for path in folder.iterdir())

    assert times(tmp_path / "one") == times(tmp_path / "two")


def test_it_is_quick(tmp_path):
    """Nobody waits for a demonstration."""
    started = time.monotonic()
    record_demo(str(tmp_path))
    assert time.monotonic() - started < 10


def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    """Here, and only here, the logger raises."""
    (tmp_path / "file").write_text("")
    with pytest.raises(NotRecorded, match="not recorded"):
        record_demo(str(tmp_path / "file"))


def test_all_commands_tell_the_same_of_each_session(demo, tmp_path):
    """The same requests, turns, tokens and cost."""
    folder = str(demo[0])
    env = {"HOME": str(tmp_path), "SESSIONLOG_DIR": folder}
    check_agreement(env, str(tmp_path / "ledger.sqlite"), directory=folder)
