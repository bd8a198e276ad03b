"""Unread responses: when the ledger may decide as it is, and when the session's logs are read first."""

import json
import sqlite3

import pytest

from sessionlog.analytics.budgets.rules import parse_budgets
from sessionlog.guard import decide, fresh_ledger
from sessionlog.guard.decide import Decision, Rules, decide_unread
from sessionlog.guard.hook import AGENTS, parse_hook
from sessionlog.guard.limits import GuardLimits
from tests.guard.agent_logs import LOGS, ClaudeCode

FAR = {"requests": 1000, "period": "day"}


@pytest.fixture
def env(tmp_path):
    """A user with an empty home folder."""
    return {"HOME": str(tmp_path)}


@pytest.fixture
def ledger(tmp_path):
    """The ledger's path."""
    return str(tmp_path / "data" / "ledger.sqlite")


def hook_of(log, given):
    """A hook as the guard has it."""
    return parse_hook(AGENTS[log.agent], json.dumps(given))


def rules_of(ledger, env, budget=None, **more):
    """The rules of one budget, and limits."""
    budgets = parse_budgets({"one": budget} if budget else {})
    strict = more.pop("is_strict", False)
    limits = GuardLimits(**more)
    return Rules(budgets=budgets, limits=limits, zone="UTC", ledger=ledger, env=env, is_strict=strict)


def read(log, given, rules):
    """Read the session's logs into the ledger, as a hook does."""
    book = fresh_ledger.open_fresh(hook_of(log, given), rules.ledger, rules.env, None)
    book.close()


def requests(ledger):
    """How many requests the ledger has."""
    connection = sqlite3.connect(ledger)
    try:
        return connection.execute("SELECT SUM(requests) FROM records").fetchone()[0]
    finally:
        connection.close()


@pytest.mark.parametrize("agent", LOGS)
def test_far_from_a_limit_the_ledger_decides_as_it_is(agent, tmp_path, env, ledger):
    """New responses are left for later."""
    log, rules = LOGS[agent](tmp_path), rules_of(ledger, env, FAR)
    read(log, log.finished("ls 1"), rules)
    assert decide_unread(hook_of(log, log.request("ls 2")), rules) == Decision()
    assert requests(ledger) == 1


NEAR = [
    {"requests": 3, "period": "day"}, {"requests": 3, "per": "session"}, {"tokens": 6000, "window": "5h"},
    {"usd": 0.01, "period": "month"},
]  # fmt: skip


@pytest.mark.parametrize("budget", NEAR, ids=str)
@pytest.mark.parametrize("agent", LOGS)
def test_what_may_reach_the_next_level_is_read(agent, budget, tmp_path, env, ledger):
    """A response counts as four times the largest one until it is read, a request as one."""
    log, rules = LOGS[agent](tmp_path), rules_of(ledger, env, budget)
    read(log, log.finished("ls 1"), rules)
    log.finished("ls 2")
    assert decide_unread(hook_of(log, log.request("ls 3")), rules) is None


def test_the_cost_per_minute_is_near_as_well(tmp_path, env, ledger):
    """A limit of money without any budget."""
    log = ClaudeCode(tmp_path)
    read(log, log.finished("ls 1"), rules_of(ledger, env))
    hook = hook_of(log, log.request("ls 2"))
    assert decide_unread(hook, rules_of(ledger, env, cost_per_minute=0.001)) is None
    assert decide_unread(hook, rules_of(ledger, env, cost_per_minute=9.0)) == Decision()


def _new_model(log, tmp_path):
    log._model = "claude-opus-4-1"
    log.finished("ls 2")


def _spaced_model(log, tmp_path):
    with log.path.open("a") as file:
        file.write('{"type": "assistant", "message": {"model": "claude-opus-4-1"}}\n')


def _new_sub_agent(log, tmp_path):
    ClaudeCode(tmp_path, subagent="a17")


def _much(log, tmp_path):
    log.finished("ls 2", "x" * 300_000)


def _rewritten(log, tmp_path):
    log.path.write_bytes(log.path.read_bytes()[:90])


def _gone(log, tmp_path):
    log.path.unlink()


@pytest.mark.parametrize(
    "change", [_new_model, _spaced_model, _new_sub_agent, _much, _rewritten, _gone], ids=lambda one: one.__name__[1:]
)
def test_what_cannot_be_estimated_is_read(change, tmp_path, env, ledger):
    """However far the limits are."""
    log, rules = ClaudeCode(tmp_path), rules_of(ledger, env, FAR)
    read(log, log.finished("ls 1"), rules)
    change(log, tmp_path)
    assert decide_unread(hook_of(log, log.call_hook()), rules) is None


def test_a_session_that_the_ledger_does_not_know_is_read(tmp_path, env, ledger):
    """So is one without a ledger, and all logs before a prompt and with `--strict`."""
    log, rules = ClaudeCode(tmp_path), rules_of(ledger, env, FAR)
    hook = log.finished("ls 1")
    assert decide_unread(hook_of(log, hook), rules) is None
    read(log, hook, rules)
    assert decide_unread(hook_of(log, hook), rules) == Decision()
    assert decide_unread(hook_of(log, log.prompt_hook()), rules) is None
    assert decide_unread(hook_of(log, hook), rules_of(ledger, env, FAR, is_strict=True)) is None
    assert decide_unread(hook_of(log, hook | {"session_id": "other", "transcript_path": "/x.jsonl"}), rules) is None


def test_loops_alone_need_no_ledger(tmp_path, env, ledger, monkeypatch):
    """Without budgets none is made."""
    log, rules = ClaudeCode(tmp_path), rules_of(ledger, env)
    monkeypatch.setattr(decide, "open_ledger", None)
    for _ in range(4):
        assert decide_unread(hook_of(log, log.finished()), rules) == Decision()
    assert decide_unread(hook_of(log, log.request()), rules) == Decision(repeats=5)
    assert decide_unread(hook_of(log, log.prompt_hook()), rules) == Decision()


def test_a_loop_and_a_warning_are_found_in_the_ledger_as_it_is(tmp_path, env, ledger):
    """What the ledger knows already does not wait for what it does not know."""
    log, rules = ClaudeCode(tmp_path), rules_of(ledger, env, {**FAR, "warn": 0.1})
    read(log, log.finished(), rules)
    [state] = decide_unread(hook_of(log, log.request()), rules).nearly_spent
    assert (state.name, state.used) == ("one", 1)
    for _ in range(4):
        log.finished()
    assert decide_unread(hook_of(log, log.request()), rules).repeats == 5
