"""`sessionlog guard`: the hook of an agent, from its JSON on stdin to the answer on stdout."""

import gc
import io
import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
import threading
import tomllib
from contextlib import closing
from pathlib import Path

import pytest

from sessionlog.cli import guard
from sessionlog.guard.hook import AGENTS
from sessionlog.guard.limits import GuardLimits, parse_limits
from tests.guard.agent_logs import LOGS, ClaudeCode, Codex

PAGE = Path(__file__).parents[2] / "docs" / "guard.md"
THREE = '[budgets.three]\nrequests = 3\nperiod = "day"\n'
ALLOWED = (0, "", "")


@pytest.fixture
def ask(cli, monkeypatch):
    """Run the hook of an agent in this process with this JSON, and return exit code, stdout and stderr."""
    monkeypatch.setattr(guard, "_SECONDS", 60.0)  # its end would be that of this process

    def run(agent, hook, *words):
        text = hook if isinstance(hook, bytes) else json.dumps(hook).encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        return cli("guard", agent, *words)

    return run


def reason(ran):
    """The sentence of a denial, wherever the agent's JSON has it; "" for any other answer."""
    assert ran.code == 0
    if not ran.out:
        return ""
    answer = ran.json
    denied = answer.get("hookSpecificOutput", {}).get("permissionDecisionReason")
    return denied or answer.get("reason") or answer.get("stopReason") or ""


@pytest.mark.parametrize("agent", LOGS)
def test_a_budget_of_three_requests_stops_the_fourth(agent, home, config, ask, cli):
    """The response that makes a call counts before the call is made: the fourth request is never sent."""
    config(THREE)
    log = LOGS[agent](home)
    assert cli("ledger", "sync").code == 0
    assert ask(agent, log.prompt_hook()) == ALLOWED
    for number in range(2):
        assert ask(agent, log.finished(f"ls {number}")) == ALLOWED
    sentence = reason(ask(agent, log.request("ls 3")))
    assert sentence.startswith("Budget 'three' is spent: 3 of 3 requests since ")
    assert sentence.endswith("; raise it in ~/.config/sessionlog/config.toml ([budgets.three])")
    assert "; resets at " in sentence
    assert reason(ask(agent, log.prompt_hook())) == sentence


def test_a_sub_agents_requests_count(home, config, ask):
    """Its log is in the session's folder; after it has returned, the session is stopped, too."""
    config(THREE)
    main, part = ClaudeCode(home), ClaudeCode(home, subagent="a17")
    main.request("a task")
    assert ask("claude-code", part.finished("ls 1") | {"transcript_path": str(main.path), "agent_id": "a17"}) == ALLOWED
    hook = part.finished("ls 2") | {"transcript_path": str(main.path), "agent_id": "a17"}
    assert reason(ask("claude-code", hook)).startswith("Budget 'three' is spent: 3 of 3 requests")
    after = main.hook("PostToolUse", tool_name="Agent", tool_input={}, tool_response={}, tool_use_id="call-1")
    ran = ask("claude-code", after)
    assert ran.json["continue"] is False
    assert ran.json["stopReason"].startswith("Budget 'three' is spent")


SCOPES = [
    ('project = "/src/api"', True), ('project = "/src/web"', False), ('model = "claude-*"', True),
    ('model = "gpt-*"', False), ('source = "claude-code"', True), ('source = "codex"', False),
    ('exclude = "1111*"', False), ('exclude = "2222*"', True), ('meta = { team = "x" }', False),
]  # fmt: skip


@pytest.mark.parametrize(("scope", "stops"), SCOPES)
def test_a_budget_stops_the_sessions_that_it_counts(scope, stops, home, config, ask):
    """One for another project, model or agent is no reason to stop this session, however spent it is."""
    config(f'{THREE}{scope}\n[budgets.session]\nrequests = 90\nper = "session"\n')
    log = ClaudeCode(home)
    Codex(home, cwd="/src/web")
    for number in range(4):
        log.finished(f"ls {number}")
    assert bool(reason(ask("claude-code", log.prompt_hook()))) is stops


def test_other_sessions_count_for_a_budget_and_stop_this_one(home, config, ask, cli):
    """A prompt is asked after all logs were read; a budget of a session is its own."""
    config(f'{THREE}[budgets.each]\nrequests = 3\nper = "session"\n')
    log, other = ClaudeCode(home), Codex(home)
    assert cli("ledger", "sync").code == 0
    other.finished("ls 1")
    other.finished("ls 2")
    log.finished("ls 3")
    sentence = reason(ask("claude-code", log.prompt_hook()))
    assert sentence.startswith("Budget 'three' is spent: 3 of 3 requests since ")
    assert "'each'" not in sentence
    other.finished("ls 4")
    assert "Budget 'each' is spent: 3 of 3 requests in this session" in reason(ask("codex", other.prompt_hook()))


def test_without_a_first_sync_only_the_session_counts(home, config, ask):
    """Reading years of logs takes longer than a hook may; a note names the command that does it."""
    config(THREE)
    log, other = ClaudeCode(home), Codex(home)
    for number in range(3):
        other.finished(f"ls {number}")
    log.finished()
    ran = ask("claude-code", log.prompt_hook())
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == "sessionlog guard: only this session counts; `sessionlog ledger sync` reads the others once\n"


@pytest.mark.parametrize("words", [[], ["--strict"]])
def test_a_spent_budget_stops_while_another_process_writes_to_the_ledger(words, home, config, ask, cli, monkeypatch):
    """However long a first sync of years takes: the ledger decides as it is, and with `--strict` nothing is allowed."""
    monkeypatch.setattr("sessionlog.guard.fresh_ledger._BUSY_SECONDS", 0.0)
    config(THREE)
    log = ClaudeCode(home)
    for number in range(3):
        log.finished(f"ls {number}")
    assert cli("ledger", "sync").code == 0
    log.finished("ls 4")
    with closing(sqlite3.connect(home / ".local/share/sessionlog/ledger.sqlite", isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        sentence = reason(ask("claude-code", log.prompt_hook(), *words))
    wanted = "another process is writing to it; try again" if words else "Budget 'three' is spent: 3 of 3 requests"
    assert wanted in sentence


def test_a_spent_budget_stops_before_other_sessions_are_read(home, config, ask, cli, monkeypatch):
    """Reading many new logs may take longer than a hook has, which would allow the prompt."""
    config(THREE)
    log = ClaudeCode(home)
    assert cli("ledger", "sync").code == 0
    monkeypatch.setattr("sessionlog.sources.discover.discover", None)  # what lists all logs
    for number in range(3):
        log.finished(f"ls {number}")
    assert "'three' is spent" in reason(ask("claude-code", log.prompt_hook()))


AMOUNTS = [
    ("usd = 0.001", r"\$0\.0\d+ of \$0\.00\d* since "), ("tokens = 2_000", "2,220 of 2,000 tokens since "),
    ("requests = 2", "2 of 2 requests since "),
]  # fmt: skip


@pytest.mark.parametrize(("amount", "words"), AMOUNTS)
def test_each_unit_stops(amount, words, home, config, ask):
    """With what is used and what may be used."""
    config(f'[budgets.daily]\n{amount}\nperiod = "day"\n')
    log = ClaudeCode(home)
    log.finished("ls 1")
    sentence = reason(ask("claude-code", log.request("ls 2")))
    assert re.search(words, sentence), sentence


def test_a_warning_is_given_once_for_each_session_and_budget(home, config, ask, cli):
    """At each call it would be noise; at another level or in another session it is news."""
    path = config('[budgets.ten]\nrequests = 10\nperiod = "day"\nwarn = 20\n')
    log = ClaudeCode(home)
    assert cli("ledger", "sync").code == 0
    assert ask("claude-code", log.finished("ls 1")) == ALLOWED
    warned = ask("claude-code", log.finished("ls 2"))
    assert warned.json["systemMessage"].startswith("Budget 'ten' is 20 % used: 2 of 10 requests since ")
    assert ask("claude-code", log.finished("ls 3")) == ALLOWED
    assert ask("claude-code", log.prompt_hook()) == ALLOWED
    other = Codex(home)
    assert "30 % used" in ask("codex", other.prompt_hook()).json["systemMessage"]
    path.write_text('[budgets.ten]\nrequests = 10\nperiod = "day"\nwarn = 30\n')
    assert "30 % used" in ask("claude-code", log.prompt_hook()).json["systemMessage"]
    assert ask("claude-code", log.prompt_hook()) == ALLOWED


def test_a_warning_that_cannot_be_remembered_is_an_error_that_allows(home, config, ask, tmp_path, monkeypatch):
    """No state is kept outside the state folder."""
    config('[budgets.ten]\nrequests = 10\nperiod = "day"\nwarn = 10\n')
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    log = ClaudeCode(home)
    ran = ask("claude-code", log.finished())
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.startswith("sessionlog guard: ")
    assert ran.err.endswith(" (allowed)\n")


@pytest.mark.parametrize("agent", LOGS)
def test_the_fifth_same_call_is_denied(agent, home, ask):
    """Without any configuration; the sentence has the command and the next step."""
    log = LOGS[agent](home)
    for number in range(1, 5):
        assert ask(agent, log.request("make test")) == ALLOWED
        log.result(f"call-{number}", "make test", "ok")
    assert reason(ask(agent, log.request("make test"))) == (
        f"The agent goes in circles: {log.tool} (make test) for the 5th time in a row, with the same results; "
        "try another way, or raise `repeats` in ~/.config/sessionlog/config.toml ([guard])"
    )


def test_repeats_are_configured(home, config, ask):
    """Also as 0, for any number."""
    config("[guard]\nrepeats = 2\n")
    log = ClaudeCode(home)
    log.finished("make test")
    assert "for the 2nd time" in reason(ask("claude-code", log.finished("make test")))
    config("[guard]\nrepeats = 0\n")
    for _ in range(8):
        log.finished("make test")
    assert ask("claude-code", log.request("make test")) == ALLOWED


def test_the_limits_of_the_page_are_valid():
    """And it names all of them."""
    [block] = re.findall(r"^```toml\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    limits = tomllib.loads(block)["guard"]
    assert parse_limits(limits) == GuardLimits(cost_per_minute=2.5)
    assert {*limits} == {*GuardLimits.__slots__}


def test_a_cost_per_minute_is_denied(home, config, ask):
    """Over five minutes: a single response is no runaway."""
    config("[guard]\ncost_per_minute = 0.01\n")
    log = ClaudeCode(home, model="claude-opus-4-1")
    assert ask("claude-code", log.finished("ls 0")) == ALLOWED
    for number in range(1, 9):
        log.finished(f"ls {number}")
    sentence = reason(ask("claude-code", log.request("ls 9")))
    assert sentence.startswith("The session costs $0.0")
    assert " a minute, more than $0.01; wait some minutes, or raise `cost_per_minute` in ~/.config" in sentence
    config("[guard]\ncost_per_minute = 5\n")
    assert ask("claude-code", log.request("ls 9")) == ALLOWED


ERRORS = [
    ("[guard]\nrepeat = 5\n", "config.toml: [guard] unknown key 'repeat'"),
    ("budgets = 5", "config.toml: budgets must be a table"), ("[budgets", "config.toml: not TOML"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), ERRORS)
@pytest.mark.parametrize("agent", AGENTS)
def test_its_own_errors_allow_and_with_strict_deny(agent, text, message, home, config, ask):
    """A hook that cannot answer must not stop all work, unless it was asked to."""
    config(text)
    log = LOGS[agent](home)
    ran = ask(agent, log.request())
    assert (ran.code, ran.out) == (0, "")
    assert message in ran.err
    assert ran.err.endswith(" (allowed)\n")
    strict = ask(agent, log.request(), "--strict")
    assert message in reason(strict)
    assert reason(strict).endswith(" (denied, as --strict asks)")


def test_an_invalid_budget_is_named_and_the_others_hold(home, config, ask):
    """With `--strict` nothing is allowed until it is mended."""
    config(f"[budgets.odd]\nusd = 5\n{THREE}")
    log = ClaudeCode(home)
    ran = ask("claude-code", log.finished("ls 1"))
    assert (ran.code, ran.out) == (0, "")
    assert "[budgets.odd] needs exactly one of per, window, period" in ran.err
    assert "[budgets.odd]" in reason(ask("claude-code", log.finished("ls 2"), "--strict"))
    assert "'three' is spent" in reason(ask("claude-code", log.finished("ls 3")))


def test_strict_denies_what_is_not_fully_known(home, config, ask):
    """A model without a price may have cost anything."""
    config('[budgets.daily]\nusd = 5\nperiod = "day"\n')
    log = ClaudeCode(home, model="nameless-1")
    assert ask("claude-code", log.finished("ls 1")) == ALLOWED
    assert "nameless-1" in reason(ask("claude-code", log.request("ls 2"), "--strict"))


def test_strict_reads_all_logs_before_a_prompt(home, config, ask):
    """Also those that no sync has read yet."""
    config(THREE)
    log, other = ClaudeCode(home), Codex(home)
    for number in range(3):
        other.finished(f"ls {number}")
    assert "'three' is spent" in reason(ask("claude-code", log.prompt_hook(), "--strict"))


def test_strict_allows_what_is_known(home, config, ask, cli):
    """An ordinary session is not disturbed by it."""
    config(THREE)
    log = ClaudeCode(home)
    assert cli("ledger", "sync").code == 0
    assert ask("claude-code", log.finished("ls 1"), "--strict") == ALLOWED


HOSTILE = [
    b"", b"\n", b"not json", b"[]", b"{}", b"\xff\xfe\0", b"[" * 200_000, b'{"hook_event_name":' * 5000,
    b'{"hook_event_name": "PreToolUse"', b'{"hook_event_name": 7}', b"x" * (33 << 20),
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_input_allows_with_one_line_and_with_strict_denies(text, home, ask):
    """Empty, huge, cut, nested without end: exit code 0, and no traceback."""
    ran = ask("claude-code", text)
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.startswith("sessionlog guard: ")
    assert ran.err.count("\n") == 1
    assert ask("claude-code", text, "--strict").json["decision"] == "block"


HOSTILE_FIELDS = [
    {"transcript_path": "/dev/zero"}, {"transcript_path": "/etc/passwd"}, {"transcript_path": "a\0b"},
    {"transcript_path": "x" * 70_000}, {"transcript_path": "../../.."}, {"transcript_path": None, "session_id": None},
    {"session_id": "' OR 1=1 --"}, {"session_id": "\ud800"}, {"tool_input": "\ud800"}, {"tool_use_id": "\ud800"},
    {"tool_name": "\x1b]0;x\x07" * 999}, {"agent_id": "../" * 99}, {"cwd": "\0"}, {"model": "*[]"},
    {"tool_input": json.loads("[" * 400 + "]" * 400)}, {"tool_input": {"command": "x " * 1_000_000}},
]  # fmt: skip


@pytest.mark.parametrize("fields", HOSTILE_FIELDS, ids=range(len(HOSTILE_FIELDS)))
@pytest.mark.parametrize("agent", AGENTS)
def test_hostile_fields_never_crash(agent, fields, home, config, ask, monkeypatch):
    """Whatever a field holds, there is an answer, or one line of error."""
    monkeypatch.setattr("sessionlog.guard.fresh_ledger._LOGGED_SECONDS", 0.0)
    config(f'{THREE}model = "x*"\n')
    ran = ask(agent, LOGS[agent](home).call_hook() | {"tool_use_id": "none"} | fields)
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.count("\n") <= 1


def test_a_named_pipe_as_the_log_is_not_waited_for(home, ask):
    """Nor is any other file that is no log."""
    os.mkfifo(home / "pipe")
    hook = ClaudeCode(home).call_hook() | {"transcript_path": str(home / "pipe"), "tool_use_id": "none"}
    assert ask("claude-code", hook) == ALLOWED


def test_no_control_character_of_the_input_is_printed(home, ask):
    """Neither in an answer nor in an error."""
    log = ClaudeCode(home)
    for _ in range(4):
        log.finished("\x1b[31mls\u202e")
    sentence = reason(ask("claude-code", log.request("\x1b[31mls\u202e")))
    assert "for the 5th time" in sentence
    assert sentence.isprintable()


def test_garbage_is_collected_again_afterwards(home, ask):
    """A program may run commands in its own process."""
    assert ask("claude-code", ClaudeCode(home).call_hook()) == ALLOWED
    assert gc.isenabled()


def test_other_events_are_allowed_silently(home, ask):
    """A hook may be configured for more events than are guarded."""
    assert ask("claude-code", ClaudeCode(home).hook("Stop")) == ALLOWED


MISTAKES = [
    (["crush"], "there is no hook for the agent 'crush'; there are hooks for claude-code, codex, gemini"),
    ([], "there is no hook for the agent ''"), (["--later", "5", "codex"], "this version does not know `guard --later 5 codex"),
    (["codex", "--later"], "update sessionlog, or write the hook again with `sessionlog guard --install codex --write`"),
    (["codex", "--later=5"], "does not know"), (["codex", "gemini"], "does not know"), (["codex", "--ledger", ""], "`guard codex --ledger ''"),
    (["codex", "--strict=later"], "does not know"), (["--later"], "there is no hook for the agent ''"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "message"), MISTAKES, ids=range(len(MISTAKES)))
def test_a_command_line_that_is_not_known_never_blocks(words, message, home, ask):
    """Exit code 2 would, and a later version may have installed the hook; with `--strict` it is denied in JSON."""
    hook, strict = Codex(home).call_hook(), any(word.startswith("--strict") for word in words)
    if not strict:
        ran = ask(*words[:1], hook, *words[1:]) if words else ask("--ledger=x", hook)
        assert (ran.code, ran.out) == (0, "")
        assert ran.err.startswith("sessionlog guard: ")
        assert (message in ran.err, ran.err.count("\n")) == (True, 1)
        assert ran.err.endswith(" (allowed)\n")
    denied = ask(*(words or ["--ledger=x"])[:1], hook, *words[1:], *([] if strict else ["--strict"]))
    assert message in reason(denied)
    assert reason(denied).endswith(" (denied, as --strict asks)")
    assert ("hookSpecificOutput" in denied.json) is ("codex" in words)


def test_an_event_that_is_not_guarded_is_allowed_even_so(home, ask):
    """Denied, a `Stop` would make the agent go on."""
    assert ask("claude-code", ClaudeCode(home).hook("Stop"), "--later", "--strict") == ALLOWED


CLOSED = [
    ("<&-", "stdin is closed: agents write the hook's JSON to it"), ("</dev/null", "not the JSON of a hook"),
]  # fmt: skip


@pytest.mark.parametrize(("redirection", "message"), CLOSED)
def test_a_hook_without_input_never_blocks(redirection, message, home):
    """Whatever its stdin is instead."""
    for words, out in (("", ""), ("--strict", '"decision": "block"')):
        command = f"{shlex.quote(sys.executable)} -m sessionlog guard claude-code {words} {redirection}"
        ran = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
        assert ran.returncode == 0
        assert message in (ran.stdout if words else ran.stderr)
        assert (out in ran.stdout, bool(ran.stdout)) == (True, bool(words))
        assert "Traceback" not in ran.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("redirection", [">/dev/full", "2>/dev/full", ">&-", "2>&-", ">/dev/full 2>&1"])
def test_a_hook_whose_output_goes_nowhere_never_blocks(redirection, home):
    """Its answer is lost; its exit code is not 2, nor any other that agents report."""
    command = f"echo '{{}}' | {shlex.quote(sys.executable)} -m sessionlog guard claude-code --strict {redirection}"
    for line in (command, command.replace(" --strict", "")):
        assert subprocess.run(["sh", "-c", line], capture_output=True, timeout=60).returncode == 0


@pytest.mark.parametrize("error", [MemoryError(), RecursionError("x"), RuntimeError("can't start new thread")])
@pytest.mark.parametrize("name", ["_Answer._decide", "_Answer._failed", "start_new_thread"])
def test_no_error_of_its_own_is_more_than_a_line(name, error, home, ask, monkeypatch):
    """Not even one that comes while another is reported."""

    def fail(*_):
        raise error

    monkeypatch.setattr(f"sessionlog.cli.guard.{name}", fail)
    ran = ask("claude-code", b"not json")
    assert (ran.code, ran.out, ran.err.count("\n")) == (0, "", 1)
    assert ran.err.startswith("sessionlog guard: ")
    assert ask("claude-code", b"not json", "--strict").json["decision"] == "block"


def test_no_timer_ends_the_process_after_an_error(home, ask, monkeypatch):
    """What runs the command line in a process of its own goes on."""
    timers, ended = [], []
    monkeypatch.setattr(guard, "start_new_thread", lambda wait, _: timers.append(wait))
    monkeypatch.setattr(guard._Answer, "_failed", lambda *_: 1 / 0)
    monkeypatch.setattr(os, "_exit", ended.append)
    assert ask("claude-code", b"not json").code == 0
    monkeypatch.setattr(guard, "_SECONDS", 0.0)
    [wait] = timers
    wait()
    assert ended == []


def test_a_broken_ledger_allows(home, config, ask):
    """One line names it."""
    config(THREE)
    path = home / ".local/share/sessionlog/ledger.sqlite"
    path.parent.mkdir(parents=True, mode=0o700)
    path.write_bytes(b"no database at all" * 999)
    ran = ask("claude-code", ClaudeCode(home).finished())
    assert (ran.code, ran.out) == (0, "")
    assert "ledger.sqlite" in ran.err


@pytest.mark.parametrize(("words", "out"), [([], ""), (["--strict"], '"decision": "block"')])
def test_a_hook_whose_input_never_ends_is_answered_in_time(words, out, home):
    """The time limit ends the process from a second thread, wherever the first one is."""
    code = "from sessionlog.cli import guard, main; guard._SECONDS = 0.05; raise SystemExit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "guard", "claude-code", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with process:
        killer = threading.Timer(20, process.kill)
        killer.start()
        found, errors = process.stdout.read(), process.stderr.read()
        process.stdin.close()
        killer.cancel()
    assert process.returncode == 0
    assert out in found
    assert bool(found) is bool(out)
    assert "no answer within" in found + errors


LOADED = """
import sys
from sessionlog.cli import main
main()
sys.stderr.write(" ".join(sorted({"typer", "rich", "asyncio", *sys.argv[3:]} & {*sys.modules})))
"""


@pytest.fixture
def loads():
    """Run a hook in a process of its own, and return which of these modules, typer and rich it has loaded."""

    def run(hook, *modules):
        code = LOADED.replace("main()", "main(sys.argv[1:3])")
        ran = subprocess.run(
            [sys.executable, "-c", code, "guard", "claude-code", *modules], input=json.dumps(hook),
            capture_output=True, text=True, timeout=30,
        )  # fmt: skip
        assert ran.stdout == ""
        return ran.stderr

    return run


def test_a_call_loads_neither_typer_nor_rich(home, config, loads):
    """Agents wait for every call of the hook."""
    config(THREE)
    assert loads(ClaudeCode(home).finished()) == ""


def test_far_from_a_limit_no_source_is_loaded(home, config, loads):
    """The ledger and a look at the new bytes are enough."""
    config('[budgets.many]\nrequests = 1000\nwindow = "5h"\n')
    log = ClaudeCode(home)
    slow = ("msgspec", "orjson", "decimal")
    assert loads(log.finished("pytest tests/first"), "msgspec") == "msgspec"
    assert loads(log.finished("pytest tests/second"), *slow) == ""


@pytest.mark.parametrize("agent", AGENTS)
def test_install_prints_the_settings(agent, home, cli):
    """They are a JSON document; nothing is written."""
    ran = cli("guard", "--install", agent, "--strict", "--ledger", "x.sqlite")
    assert ran.code == 0
    events = ran.json["hooks"]
    assert {*events} == {*AGENTS[agent].moments}
    words = shlex.split(events[next(iter(events))][0]["hooks"][0]["command"])
    assert words[-5:] == ["guard", agent, "--strict", "--ledger", os.path.abspath("x.sqlite")]
    assert os.path.isabs(words[0])
    assert ran.err.startswith("add this to ~/.")
    assert list(home.iterdir()) == []


def test_install_and_uninstall_say_what_they_changed(home, cli):
    """And a second time that nothing had to be."""
    path = home / ".claude/settings.json"
    ran = cli("guard", "--install", "claude-code", "--write")
    assert (ran.code, ran.out) == (
        0, "~/.claude/settings.json has the hooks; `sessionlog guard --uninstall claude-code` removes them\n"
    )  # fmt: skip
    assert "hooks" in json.loads(path.read_text())
    assert "already had the hooks" in cli("guard", "--install", "claude-code", "--write").out
    assert cli("guard", "--uninstall", "claude-code").out == "~/.claude/settings.json no longer has the hooks\n"
    assert not path.exists()
    assert cli("guard", "--uninstall", "claude-code").out == "~/.claude/settings.json has no hooks of sessionlog\n"


def test_codex_asks_for_trust(home, cli):
    """Without it, its hooks do not run."""
    assert "/hooks" in cli("guard", "--install", "codex", "--write").err


def test_a_broken_settings_file_is_wrong_usage(home, cli):
    """It is left as it is."""
    (home / ".claude").mkdir()
    (home / ".claude/settings.json").write_text("{")
    ran = cli("guard", "--install", "claude-code", "--write")
    assert ran.code == 2
    assert "settings.json: not JSON" in ran.err
    assert (home / ".claude/settings.json").read_text() == "{"


def test_a_folder_that_cannot_be_written_to_is_named(home, cli):
    """With the reason of the system."""
    (home / ".claude").write_text("a file")
    ran = cli("guard", "--install", "claude-code", "--write")
    assert ran.code == 3
    assert "~/.claude/settings.json: not a directory" in ran.err.lower()


WRONG_ANYWHERE = [
    ["claude-code", "--install", "codex"], ["--install", "codex", "--uninstall", "codex"], ["codex", "--write"],
    ["--uninstall", "codex", "--write"], ["--install", "crush"], ["--uninstall=crush"], ["--install"],
]  # fmt: skip
WRONG = [[], ["codex"], ["crush"], ["codex", "--later"], ["codex", "gemini"], *WRONG_ANYWHERE]


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_wrong_usage(words, home, cli, monkeypatch):
    """Typed on a terminal, where no agent waits for it: one agent, and `--write` only to install."""
    stdin = io.StringIO()
    stdin.isatty = lambda: True
    monkeypatch.setattr(sys, "stdin", stdin)
    ran = cli("guard", *words)
    assert ran.code == 2
    assert ran.err.startswith("sessionlog: ")


@pytest.mark.parametrize("words", WRONG_ANYWHERE, ids=" ".join)
def test_wrong_usage_of_what_only_people_call(words, home, cli):
    """Also in a script."""
    assert cli("guard", *words).code == 2


def test_help_is_for_people(home, cli):
    """Wherever it is called."""
    ran = cli("guard", "--help")
    assert ran.code == 0
    assert "--install" in ran.out
