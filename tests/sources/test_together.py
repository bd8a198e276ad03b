"""Agents side by side: in one home, in copies of it, on two ways to it. Each response counts once, for the agent that made it."""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sessionlog.analytics.sessions import list_sessions
from sessionlog.analytics.tools import aggregate_tools
from sessionlog.analytics.usage import aggregate_usage
from tests.sources.homes import build_home, environment, truth_of

TOGETHER = Path(__file__).parents[2] / "testdata" / "together"
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
COLUMNS = (
    "requests", "failed_requests", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens",
    "reasoning_tokens",
)  # fmt: skip
PLAIN = (
    "claude-code/every-kind-of-copy", "codex/fork-of-a-fork", "gemini/rewritten-messages", "openclaw/copies", "pi/fork",
    "kilo/v1-database", "opencode/fork", "qwen-code/sub-agent", "kimi/fork", "kimi/code-sub-agent",
)  # fmt: skip
"""One home of each agent; where two have a file of the same name, the later one's stays."""


def told(paths=None, **options):
    """What a report says, by source."""
    report = aggregate_usage(paths, by=("source", "provider", "model"), now=NOW, **options)
    return {(r.keys["source"], r.provider, r.model): {name: getattr(r, name) for name in COLUMNS} for r in report.rows}


def expected(case, source=""):
    """What its author says."""
    return {
        (row.get("source", source), row["provider"], row["model"]): {name: row.get(name, 0) for name in COLUMNS}
        for row in truth_of(case)["rows"]
    }


@pytest.mark.parametrize("case", sorted(TOGETHER.iterdir()), ids=lambda case: case.name)
def test_agents_that_ask_each_other_are_counted_once(case, tmp_path):
    """The log of the one that asked yields to the log of the one that answered, where that is known."""
    env = environment(case, build_home(case, tmp_path))
    assert told(env=env) == expected(case)
    found = {f"{one.source}:{one.session}": one.to_dict() for one in list_sessions(None, env=env, now=NOW).rows}
    truth = truth_of(case)["sessions"]
    assert {name: {key: found[name][key] for key in truth.get(name, {})} for name in found} == truth


THREAD = "019a0000-0001-7000-8000-000000000001"


def codex_rows():
    clock = "2026-11-10T10:00:00.000Z"
    call = {"call_id": "c1", "name": "shell", "arguments": "{}"}
    yield {"timestamp": clock, "type": "session_meta", "payload": {"id": THREAD, "timestamp": clock, "cwd": "/w"}}
    yield {"timestamp": clock, "type": "response_item", "payload": {"type": "function_call", **call}}
    given = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
    yield {"timestamp": clock, "type": "response_item", "payload": given}


def openclaw_rows(session):
    clock = "2026-11-10T10:00:03.000Z"
    yield {"type": "session", "version": 3, "id": session, "timestamp": clock, "cwd": "/w"}
    calls = [("c1", f"codex-app-server:{THREAD}:1"), ("c2", None)]
    for call, mirrored in calls:
        content = [{"type": "toolCall", "id": call, "name": "shell", "arguments": {}}]
        told = {"role": "assistant", "provider": "openai-codex", "model": "gpt-5", "content": content}
        if mirrored:
            told["idempotencyKey"] = mirrored
        yield {"type": "message", "id": f"m-{call}", "timestamp": clock, "message": told}
        given = {"role": "toolResult", "toolCallId": call, "toolName": "shell", "content": "ok"}
        yield {"type": "message", "id": f"r-{call}", "timestamp": clock, "message": given}


def write_rows(path, rows):
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize(("known", "calls"), [(True, {"codex": 1, "openclaw": 1}), (False, {"openclaw": 2})])
def test_tool_calls_of_a_mirrored_thread_are_counted_once(known, calls, tmp_path):
    """OpenClaw repeats what Codex did for it: that counts in the thread's own log, what only OpenClaw tells counts there."""
    session = "7d0c2a8e-1111-4111-8111-111111111111"
    write_rows(tmp_path / f".openclaw/agents/main/sessions/{session}.jsonl", openclaw_rows(session))
    if known:
        day = tmp_path / ".codex/sessions/2026/11/10"
        write_rows(day / f"rollout-2026-11-10T10-00-00-{THREAD}.jsonl", codex_rows())
    report = aggregate_tools(None, env={"HOME": str(tmp_path)}, by=("source", "tool"), now=NOW)
    assert {row.keys["source"]: row.calls for row in report.rows} == calls


def test_all_agents_in_one_home(tmp_path):
    """No agent's logs are taken for another's, and none is missing."""
    for number, case in enumerate(PLAIN):
        shutil.copytree(build_home(case, tmp_path / str(number)), tmp_path / "all", dirs_exist_ok=True)
    truths = [expected(case, case.split("/")[0]) for case in PLAIN]
    rows = {key: dict.fromkeys(COLUMNS, 0) for truth in truths for key in truth}
    for truth in truths:
        for key, row in truth.items():
            rows[key] = {name: rows[key][name] + row[name] for name in COLUMNS}
    assert told(env={"HOME": str(tmp_path / "all")}) == rows


@pytest.mark.parametrize("case", PLAIN)
def test_a_copy_of_a_home_adds_nothing(case, tmp_path):
    """A backup beside the original, or a home that was synchronised from another machine."""
    home = build_home(case, tmp_path)
    shutil.copytree(home, tmp_path / "backup")
    source = case.split("/")[0]
    both = told([home, tmp_path / "backup"], filters={"source": [source]}, env={"HOME": str(tmp_path)})
    assert both == expected(case, source)


@pytest.mark.parametrize(
    ("case", "links", "env"),
    [
        ("claude-code/missing-ids", {"again": ".claude"}, {"CLAUDE_CONFIG_DIR": "{home}/.claude, {home}/again"}),
        ("claude-code/missing-ids", {}, {"CLAUDE_CONFIG_DIR": "{home}/.claude,{home}/.claude/projects,{home}/.claude/"}),
        ("claude-code/missing-ids", {".config/claude": ".claude"}, {}),
        ("claude-code/missing-ids", {".claude/projects/-w-again": ".claude/projects/-w-api"}, {}),
        ("codex/headless", {".codex/archived_sessions": ".codex/sessions"}, {}),
        ("codex/headless", {".openclaw/agents/a/agent/codex-home": ".codex"}, {}),
        ("codex/headless", {"again": ".codex"}, {"CODEX_HOME": "{home}/again"}),
        ("gemini/rewritten-messages", {"again": ".gemini"}, {"GEMINI_DATA_DIR": "{home}/again/tmp,{home}/.gemini/tmp"}),
        ("openclaw/twins", {".clawdbot": ".openclaw", ".moltbot": ".clawdbot"}, {}),
        ("openclaw/database", {".clawdbot": ".openclaw"}, {}),
        (
            "openclaw/twins",
            {"again": ".openclaw"},
            {"OPENCLAW_DIR": "{home}/.openclaw,{home}/again", "OPENCLAW_STATE_DIR": "{home}/.openclaw"},
        ),
        (
            "pi/version-1",
            {},
            {"PI_AGENT_DIR": "{home}/.pi/agent", "PI_CODING_AGENT_SESSION_DIR": "{home}/.pi/agent/sessions"},
        ),
        ("pi/version-1", {".omp": ".pi"}, {}),
        ("opencode/v1-database", {"again": ".local/share/opencode"}, {"OPENCODE_DATA_DIR": "{home}/again"}),
        ("opencode/legacy-files", {".local/share/opencode/storage/message/again": ".local/share/opencode/storage/message/ses_l"}, {}),
        ("qwen-code/without-total", {"again": ".qwen"}, {"QWEN_DATA_DIR": "{home}/.qwen,{home}/again"}),
        ("qwen-code/without-total", {}, {"QWEN_DATA_DIR": "{home}/.qwen,{home}/.qwen/projects"}),
        ("kimi/cli", {"again": ".kimi"}, {"KIMI_SHARE_DIR": "{home}/.kimi", "KIMI_DATA_DIR": "{home}/again"}),
        ("kimi/code", {"again": ".kimi-code"}, {"KIMI_CODE_HOME": "{home}/again"}),
    ],
)  # fmt: skip
def test_two_ways_to_a_log_are_one_log(case, links, env, tmp_path):
    """By two variables, by a variable and a default, by links to files that have no ids to be known by."""
    home = build_home(case, tmp_path)
    for name, target in links.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).symlink_to(home / target)
    source = case.split("/")[0]
    env = {"HOME": str(home)} | {name: value.replace("{home}", str(home)) for name, value in env.items()}
    assert told(env=env, filters={"source": [source]}) == expected(case, source)
