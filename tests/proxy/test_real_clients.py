"""`sessionlog run` around real agents: what is recorded equals what a stub of the model APIs answered.

`$SESSIONLOG_CLIENTS` names a folder with the clients, each in an npm prefix of its own, `npm/claude`, `npm/codex`, …,
and Node.js in `venvs/node24` where the system's is too old. The stub is `tools/stub.py` beside the homes of
`$SESSIONLOG_REAL`; it knows the usage of each of its answers. All of it stays on the loopback interface.
"""

import json
import os
import re
import socket
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from sessionlog import aggregate_usage, check_logs, read_events
from sessionlog.events.payload_json import payload

CLIENTS, HOMES = os.environ.get("SESSIONLOG_CLIENTS"), os.environ.get("SESSIONLOG_REAL")
STUB = Path(HOMES or ".").parent / "tools" / "stub.py"
KEY = "sk-dummy-0001-of-the-user"
CLASSES = ("input", "cache_read", "cache_write", "output", "reasoning")
REFUSED = {"529": "503"}  # the stub's truth has 529 for all APIs, its answer only for Anthropic's
ADDRESS = re.compile(r"127\.0\.0\.1:\d+")
COMPACTION = ("followed by a <summary> block", "<state_snapshot>", "seamlessly continue")
"""What Claude Code, Gemini CLI with its descendant, and Codex ask for when they compact a conversation."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

QUIET = {
    "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1", "DO_NOT_TRACK": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1", "NO_UPDATE_NOTIFIER": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "GEMINI_TELEMETRY_ENABLED": "false",
    "GEMINI_CLI_NO_RELAUNCH": "true", "QWEN_TELEMETRY_ENABLED": "false", "TZ": "UTC", "LANG": "C.UTF-8",
    "TERM": "dumb", "NO_PROXY": "127.0.0.1",
}  # fmt: skip
NO_UPDATES = {
    "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
    "privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False},
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """An afternoon with one client.

    Attributes:
        files: Its settings: path in the home → text, with `{stub}` for the address of the stub.
        environment: Its variables, with `{stub}` as well.
        words: What stands before each prompt.
        turns: Prompts, and words before them.
        seen: What has to be among the requests, so that the scenario is not less than it claims to be.
        codes: Exit codes that may come, as some clients fail with the refused request.
    """

    files: dict[str, str]
    environment: dict[str, str]
    words: tuple[str, ...]
    turns: tuple[tuple[str, ...], ...]
    seen: frozenset[str]
    codes: frozenset[int] = frozenset({0, 1})


SCENARIOS = {
    "claude": Scenario(
        files={".claude/settings.json": json.dumps({"env": {"ANTHROPIC_BASE_URL": "{stub}"}})},
        environment={"ANTHROPIC_API_KEY": KEY},
        words=("claude", "--model", "claude-opus-4-5-20251101", "--allowedTools", "Bash(echo:*),Read,Task,Agent", "-p"),
        turns=(
            ("First. STEPS[think+read+bash,text]",), ("--continue", "/compact"), ("--continue", "After. STEPS[text]"),
            ("Two sub-agents. STEPS[task+task,text]",), ("Overloaded. STEPS[err]",), ("Refused. STEPS[fatal]",),
        ),
        seen=frozenset({"tools", "sub-agent", "compaction", "overloaded", "refused"}),
    ),
    "codex": Scenario(
        files={
            ".codex/config.toml": 'model = "gpt-5.1-codex"\nopenai_base_url = "{stub}/v1"\n'
            "check_for_update_on_startup = false\n[analytics]\nenabled = false\n"
            '[model_providers.own]\nname = "own"\nbase_url = "{stub}/v1"\nenv_key = "OWN_KEY"\n'
        },
        environment={"CODEX_API_KEY": KEY, "OWN_KEY": KEY},
        words=("codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
        turns=(
            ("First. STEPS[think+bash,text]",), ("resume", "--last", "Second. STEPS[bash,bash,text]"),
            ("Overloaded. STEPS[err]",), ("Refused. STEPS[fatal]",),
            ("-c", 'model_provider="own"', "Long. STEPS[text]"),
            ("-c", 'model_provider="own"', "-c", "model_auto_compact_token_limit=3000",
             "resume", "--last", "More. STEPS[text]"),
        ),
        seen=frozenset({"tools", "compaction", "overloaded", "refused"}),
    ),
    "gemini": Scenario(
        files={".gemini/settings.json": json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}, **NO_UPDATES}),
               ".gemini/.env": f"GEMINI_API_KEY={KEY}\nGOOGLE_GEMINI_BASE_URL={{stub}}\n"},
        environment={},
        words=("gemini", "-m", "gemini-2.5-pro", "--yolo", "--skip-trust"),
        turns=(
            ("-p", "First. STEPS[read,bash,text]"), ("--resume", "latest", "-p", "Second. STEPS[think+read+bash,text]"),
            ("-p", "Sub-agent. STEPS[task,text]"), ("--resume", "latest", "-p", "/compress"),
            ("-p", "Overloaded. STEPS[err]"), ("-p", "Refused. STEPS[fatal]"),
        ),
        seen=frozenset({"tools", "sub-agent", "compaction", "overloaded", "refused"}),
        codes=frozenset({0, 1, 144}),
    ),
    "qwen": Scenario(
        files={".qwen/settings.json": json.dumps({
            "security": {"auth": {"selectedType": "openai"}}, **NO_UPDATES,
            "modelProviders": {"openai": [{"id": "qwen3-coder-plus", "envKey": "OWN_KEY", "baseUrl": "{stub}/v1"}]},
        })},
        environment={"OWN_KEY": KEY},
        words=("qwen", "--auth-type", "openai", "-m", "qwen3-coder-plus", "--yolo"),
        turns=(
            ("-p", "First. STEPS[read,bash,text]"), ("--continue", "-p", "Second. STEPS[think+read+bash,text]"),
            ("-p", "Sub-agent. STEPS[task,text]"), ("--continue", "-p", "/compress"),
            ("-p", "Overloaded. STEPS[err]"), ("-p", "Refused. STEPS[fatal]"),
        ),
        seen=frozenset({"tools", "sub-agent", "compaction", "overloaded", "refused"}),
    ),
    "opencode": Scenario(
        files={".config/opencode/opencode.json": json.dumps({
            "autoupdate": False, "share": "disabled", "permission": {"*": "allow"},
            "provider": {
                "own": {"npm": "@ai-sdk/openai-compatible", "name": "Own", "models": {"large": {"name": "Large"}},
                        "options": {"baseURL": "{stub}/v1", "apiKey": KEY}},
                "anthropic": {"options": {"baseURL": "{stub}/v1", "apiKey": KEY}},
            },
        })},
        environment={},
        words=("opencode", "run", "-m", "own/large"),
        turns=(
            ("First. STEPS[read,bash,text]",), ("--continue", "Second. STEPS[think+read+bash,text]"),
            ("-m", "anthropic/claude-sonnet-4-5", "Other. STEPS[bash,text]"),
            ("Sub-agent. STEPS[task,text]",), ("Overloaded. STEPS[err]",), ("Refused. STEPS[fatal]",),
        ),
        seen=frozenset({"tools", "sub-agent", "titles", "overloaded", "refused"}),
    ),
    "copilot": Scenario(
        files={},
        environment={
            "COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false", "COPILOT_MODEL": "gpt-5.1",
            "COPILOT_PROVIDER_TYPE": "openai", "COPILOT_PROVIDER_API_KEY": KEY,
            "COPILOT_PROVIDER_BASE_URL": "{stub}/v1",
        },
        words=("copilot", "--allow-all-tools", "--disable-client-telemetry"),
        turns=(
            ("-p", "First. STEPS[read,bash,text]"), ("--continue", "-p", "Second. STEPS[think+read+bash,text]"),
            ("-p", "Sub-agent. STEPS[task,text]"), ("-p", "Refused. STEPS[fatal]"),
        ),
        seen=frozenset({"tools", "sub-agent", "refused"}),
    ),
    "droid": Scenario(
        files={".factory/settings.json": json.dumps({
            "customModels": [{
                "model": "large", "displayName": "Own", "baseUrl": "{stub}/v1", "apiKey": KEY,
                "provider": "generic-chat-completion-api", "maxOutputTokens": 8000,
            }],
            "enableDroidShield": False, "cloudSessionSync": False,
        })},
        environment={"FACTORY_API_KEY": KEY, "FACTORY_DISABLE_TELEMETRY": "1"},
        words=("droid", "exec", "--auto", "low", "-m", "custom:Own-0"),
        turns=(("First. STEPS[read,bash,text]",), ("Other. STEPS[think+bash,text]",), ("Refused. STEPS[fatal]",)),
        seen=frozenset({"tools", "refused"}),
    ),
}  # fmt: skip


@pytest.fixture
def stub(tmp_path):
    """The address of a stub of the APIs, and the folder of what it answered."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    command = [sys.executable, str(STUB), str(port), "900", str(tmp_path / "truth")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, "REAL": str(tmp_path)}
    ) as running:
        assert running.stdout.readline().startswith(b"listening")
        yield f"http://127.0.0.1:{port}", tmp_path / "truth"
        running.terminate()


@pytest.mark.skipif(not (CLIENTS and STUB.is_file()), reason="no SESSIONLOG_CLIENTS, or no stub beside SESSIONLOG_REAL")
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_wire_equals_what_was_answered(name, stub, tmp_path):
    """Each request is recorded once, with the model, the tokens in their classes, or the status that refused it."""
    if not Path(CLIENTS, "npm", name).is_dir():
        pytest.skip(f"no {name} in {CLIENTS}/npm")
    scenario, (address, truth) = SCENARIOS[name], stub
    sessions = tmp_path / "sessions"
    files = run_turns(scenario, name, f"{address}/{name}", tmp_path)
    answered = rows(truth / f"{name}.jsonl")
    asked = [row["body"] for row in rows(truth / f"{name}.requests.jsonl") if row["method"] == "POST"]
    assert seen(answered, asked) >= scenario.seen
    events = [event for log in sorted(sessions.glob("*.jsonl")) for event in read_events(log)]
    responses = [payload(event) for event in events if event.type == "llm.response"]
    assert Counter(map(recorded, responses)) == Counter(map(expected, answered))
    assert sum(event.type == "llm.request" for event in events) == len(answered)
    assert not [response for response in responses if response.partial]
    totals = aggregate_usage(sessions).totals
    assert (totals.requests, totals.total_tokens) == (
        len(answered), sum(sum(row["usage"][one] for one in CLASSES[:4]) for row in answered if row["usage"])
    )  # fmt: skip
    assert [check.damage for check in check_logs([str(sessions)]) if check.damaged] == []
    assert KEY not in "".join(log.read_text() for log in sessions.glob("*.jsonl"))
    servers = {host for path in files for host in ADDRESS.findall(path.read_text())}
    assert servers <= {address.removeprefix("http://")}, "the proxy's address stands in a file of the user's"


def run_turns(scenario, name, address, work):
    """Run all turns of a scenario in a home of their own; return its files of settings."""
    home, project = work / "home", work / "proj" / name
    project.mkdir(parents=True)
    (project / "notes.txt").write_text("Some notes.\n")
    files = {home / path: text.replace("{stub}", address) for path, text in scenario.files.items()}
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    programs = (
        f"{CLIENTS}/npm/{name}/node_modules/.bin",
        f"{CLIENTS}/venvs/node24/bin",
        "/usr/local/bin:/usr/bin:/bin",
    )
    own = {variable: text.replace("{stub}", address) for variable, text in scenario.environment.items()}
    environment = {**QUIET, **own, "HOME": str(home), "PATH": ":".join(programs),
                   "PYTHONPATH": os.pathsep.join(sys.path)}  # fmt: skip
    run = (sys.executable, "-m", "sessionlog", "run", "--dir", str(work / "sessions"), "--", *scenario.words)
    for turn in scenario.turns:
        done = subprocess.run(
            [*run, *turn], env=environment, cwd=project, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode in scenario.codes, (turn, done.stdout[-2000:], done.stderr[-2000:])
    return [*files]


def rows(path):
    """The JSON values in a file of lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def expected(row):
    """What the stub answered to a request, comparably."""
    if row["status"] != 200:
        status = str(row["status"])
        return row["model"], status if row["api"] == "anthropic" else REFUSED.get(status, status)
    return row["model"], *(row["usage"][one] for one in CLASSES)


def recorded(response):
    """What was recorded of an answer, comparably."""
    if response.error:
        return response.requested_model, response.error[:3]
    return response.model, *(getattr(response.usage, one) for one in CLASSES)


def seen(answered, asked):
    """What was among the requests.

    Args:
        answered: The stub's answers.
        asked: The bodies of the requests.
    """
    ends = [json.dumps((body.get("messages") or body.get("input") or body.get("contents"))[-1]) for body in asked]
    found = {
        "tools": any(row["calls"] for row in answered),
        "sub-agent": any("Look at the notes." in row["prompt"] for row in answered),
        "titles": any(row["text"].startswith("Stub title") for row in answered),
        "overloaded": any(row["status"] == 529 for row in answered),
        "refused": any(row["status"] == 400 for row in answered),
        "compaction": any(sign in end for sign in COMPACTION for end in ends),
    }
    return {name for name, is_there in found.items() if is_there}
