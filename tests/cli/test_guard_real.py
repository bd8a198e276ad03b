"""`sessionlog guard` in real agents: what it denies is never sent to a stub of the model APIs.

`$SESSIONLOG_CLIENTS` names a folder with the clients, each in an npm prefix of its own, `npm/claude`, `npm/codex` and
`npm/gemini`, and Node.js in `venvs/node24` where the system's is too old. The stub is `tools/stub.py` beside the homes
of `$SESSIONLOG_REAL`; it answers a prompt with `STEPS[bash,text]` by one response for each step, and counts. All of it
stays on the loopback interface and in the test's own home folder.
"""

import json
import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

CLIENTS, HOMES = os.environ.get("SESSIONLOG_CLIENTS"), os.environ.get("SESSIONLOG_REAL")
STUB = Path(HOMES or ".").parent / "tools" / "stub.py"
ROOT = Path(__file__).parents[2]
KEY = "sk-dummy-0001-of-the-user"
LONG = f"First. STEPS[{'bash,' * 9}text]"

pytestmark = [
    pytest.mark.slow, pytest.mark.timeout(300),
    pytest.mark.skipif(
        not (CLIENTS and STUB.is_file()), reason="no SESSIONLOG_CLIENTS, or no stub beside SESSIONLOG_REAL"
    ),
]  # fmt: skip

SETTINGS = (".claude/settings.json", ".codex/hooks.json", ".gemini/settings.json")
QUIET = {
    "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1", "DO_NOT_TRACK": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "NO_UPDATE_NOTIFIER": "1", "GEMINI_TELEMETRY_ENABLED": "false",
    "GEMINI_CLI_NO_RELAUNCH": "true", "TZ": "UTC", "LANG": "C.UTF-8", "TERM": "dumb", "NO_PROXY": "127.0.0.1",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Client:
    """One agent's program.

    Attributes:
        agent: Its id.
        files: Its settings: path in the home → text, with `STUB` for the address of the stub.
        environment: Its variables, with `STUB` as well.
        first: The words before the first prompt.
        next: The words before the next prompt of the same session.
        stopped: What it prints when its turn was ended; Gemini CLI alone prints the sentence.
        blocked: What it prints for a prompt that was not sent; `codex exec` has no sentence.
    """

    agent: str
    files: dict[str, str]
    environment: dict[str, str]
    first: tuple[str, ...]
    next: tuple[str, ...]
    stopped: str
    blocked: str


_CLAUDE = ("claude", "--model", "claude-sonnet-4-5-20250929", "--allowedTools", "Bash(echo:*),Read,Task,Agent")
_CODEX = (
    "codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
    "--dangerously-bypass-hook-trust",
)  # fmt: skip
_GEMINI = ("gemini", "-m", "gemini-2.5-pro", "--yolo", "--skip-trust")

ALL = {
    "claude": Client(
        agent="claude-code", files={".claude/settings.json": '{"includeCoAuthoredBy": false}'},
        environment={"ANTHROPIC_BASE_URL": "STUB", "ANTHROPIC_API_KEY": KEY},
        first=(*_CLAUDE, "--output-format", "json", "-p"), next=(*_CLAUDE, "--output-format", "json", "--continue", "-p"),
        stopped='"terminal_reason":"hook_stopped"', blocked="Budget 'three' is spent: 3 of 3 requests since 00:00",
    ),
    "codex": Client(
        agent="codex",
        files={
            ".codex/config.toml": 'model = "gpt-5.1-codex"\nmodel_provider = "own"\ncheck_for_update_on_startup = false\n'
            '[analytics]\nenabled = false\n[model_providers.own]\nname = "own"\nbase_url = "STUB/v1"\n'
            'env_key = "OWN_KEY"\nwire_api = "responses"\nrequest_max_retries = 0\nstream_max_retries = 0\n'
        },
        environment={"OWN_KEY": KEY}, first=_CODEX, next=(*_CODEX, "resume", "--last"),
        stopped="turn interrupted", blocked="hook: UserPromptSubmit Blocked",
    ),
    "gemini": Client(
        agent="gemini",
        files={
            ".gemini/settings.json": json.dumps({
                "security": {"auth": {"selectedType": "gemini-api-key"}}, "telemetry": {"enabled": False},
                "general": {"enableAutoUpdate": False},
                "privacy": {"usageStatisticsEnabled": False},
            })
        },
        environment={"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": "STUB"},
        first=(*_GEMINI, "-p"), next=(*_GEMINI, "--resume", "latest", "-p"),
        stopped="Agent execution stopped: ", blocked="Budget 'three' is spent: 3 of 3 requests since 00:00",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def stub(tmp_path_factory):
    """The address of a stub of the APIs, and the folder of what it answered."""
    folder = tmp_path_factory.mktemp("stub")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    command = [sys.executable, str(STUB), str(port), "900", str(folder)]
    environment = {**os.environ, "REAL": str(folder)}  # where the files are that it lets agents read
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as running:
        assert running.stdout.readline().startswith(b"listening")
        yield f"http://127.0.0.1:{port}", folder
        running.terminate()


class Run:
    """A client with the guard installed, in a home folder of its own.

    Attributes:
        requests: How many requests the stub has answered.
    """

    def __init__(self, name, client, folder, stub, config):
        self.client = client
        self._truth = stub[1] / f"{folder.name}.jsonl"
        self._home, self._project = folder / "home", folder / "project"
        self._project.mkdir(parents=True)
        address = f"{stub[0]}/{folder.name}"
        for path, text in {**client.files, ".config/sessionlog/config.toml": config}.items():
            self._path(path).parent.mkdir(parents=True)
            self._path(path).write_text(text.replace("STUB", address))
        path = [f"{CLIENTS}/npm/{name}/node_modules/.bin", f"{CLIENTS}/venvs/node24/bin", "/usr/bin", "/bin"]
        own = {key: value.replace("STUB", address) for key, value in client.environment.items()}
        self._env = {"HOME": str(self._home), "PATH": os.pathsep.join(path), "PYTHONPATH": str(ROOT), **QUIET, **own}
        self.sessionlog("guard", "--install", client.agent, "--write")
        self.sessionlog("ledger", "sync")

    def _path(self, name):
        return self._home / name

    def settings(self):
        """The files of the client's settings that the guard may have written."""
        return {name: self._path(name).read_text() for name in SETTINGS if self._path(name).exists()}

    def sessionlog(self, *words):
        """Run sessionlog as the client's user."""
        command = [sys.executable, "-m", "sessionlog", *words]
        ended = subprocess.run(command, env=self._env, cwd=ROOT, capture_output=True, text=True, timeout=60)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def prompt(self, text):
        """Let the client answer a prompt; return all that it prints."""
        words = self.client.next if self._truth.exists() else self.client.first
        ended = subprocess.run(
            [*words, text], env=self._env, cwd=self._project, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=60,
        )  # fmt: skip
        return ended.stdout

    @property
    def requests(self):
        """How many requests the stub has answered."""
        return len(self._truth.read_text().splitlines())


@pytest.fixture
def start(stub, tmp_path):
    """Set up a client with a config.toml; skip the test where it is not installed."""

    def make(name, config):
        if not Path(CLIENTS, "npm", name).is_dir():
            pytest.skip(f"no {name} in {CLIENTS}/npm")
        return Run(name, ALL[name], tmp_path, stub, config)

    return make


@pytest.mark.parametrize("name", ALL)
def test_a_budget_of_three_requests_stops_the_fourth(name, start):
    """The turn ends, and the next prompt is not sent either."""
    run = start(name, '[budgets.three]\nrequests = 3\nperiod = "day"\n')
    assert run.client.stopped in run.prompt(LONG)
    assert run.requests == 3
    assert run.client.blocked in run.prompt("Second. STEPS[bash,text]")
    assert run.requests == 3


@pytest.mark.parametrize("name", ALL)
def test_a_loop_is_stopped(name, start):
    """The same call with the same results ends the turn; at five Gemini CLI would ask its model about it."""
    run = start(name, "[guard]\nrepeats = 4\n")
    assert run.client.stopped in run.prompt(LONG)
    assert run.requests == 4


@pytest.mark.parametrize("name", ALL)
def test_what_is_allowed_is_not_disturbed(name, start):
    """All requests are sent, and the settings are as they were after the hooks are removed."""
    run = start(name, '[budgets.many]\nrequests = 99\nperiod = "day"\n')
    run.prompt("First. STEPS[bash,bash,bash,text]")
    assert run.requests == 4
    run.prompt("Second. STEPS[bash,text]")
    assert run.requests == 6
    assert "sessionlog" in "".join(run.settings().values())
    run.sessionlog("guard", "--uninstall", run.client.agent)
    assert run.settings() == {path: text for path, text in run.client.files.items() if path in SETTINGS}


def test_a_sub_agent_of_claude_code_is_stopped(start):
    """With its session: the requests of both count, and none is sent after the second."""
    run = start("claude", '[budgets.two]\nrequests = 2\nperiod = "day"\n')
    run.prompt("First. STEPS[task,text]")
    assert run.requests == 2


def test_without_the_interrupt_codex_asks_its_model_again(start):
    """No answer of a hook ends its turn: calls are only denied, and the next prompt is not sent."""
    run = start("codex", '[guard]\ninterrupt = false\n[budgets.three]\nrequests = 3\nperiod = "day"\n')
    assert "Budget 'three' is spent" in run.prompt(LONG)
    assert run.requests == 10
    assert run.client.blocked in run.prompt("Second. STEPS[text]")
    assert run.requests == 10
