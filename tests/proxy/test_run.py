"""`proxy.run` and `proxy.child`: real commands with their streams, signals, exit codes and logs."""

import errno
import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import threading
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from sessionlog import aggregate_usage, check_logs, read_events
from sessionlog.errors import InvalidSettings
from sessionlog.proxy.child import CommandNotStarted, _signals_for
from sessionlog.proxy.requests import RECORDED
from sessionlog.proxy.run import record_command
from tests.integrations import wire
from tests.proxy.stub import MESSAGES

CLIENT = """
import json, os, sys, urllib.request
def ask(text):
    body = {"model": "claude-haiku-4-5", "messages": [{"role": "user", "content": text}]}
    url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
    headers = {"content-type": "application/json", "x-api-key": "corp-5up3r-s3cr3t"}
    return json.load(urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)))
"""
LEAVING = f"""{CLIENT}
import http.client
from urllib.parse import urlsplit
url = urlsplit(os.environ["ANTHROPIC_BASE_URL"])
connection = http.client.HTTPConnection(url.hostname, url.port)
connection.request("POST", url.path + "/v1/messages", "{{}}", {{"content-type": "application/json"}})
connection.getresponse().read1(100)
os._exit(0)
"""
"""A client that ends within an answer."""
SIGNALS = """
import os, signal, sys
def handle(number, frame):
    os.write(1, b"got %d\\n" % number)
    sys.exit(40 + number)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, handle)
os.write(1, b"ready\\n")
signal.pause()
"""
FOREVER = "import os, signal; os.write(1, b'ready\\n'); signal.pause()"


@pytest.fixture
def surroundings(tmp_path, provider):
    """The environment of a run: an empty home, and the provider."""
    kept = {
        name: os.environ[name] for name in ("PATH", "PYTHONPATH", "PYTHONPYCACHEPREFIX", "LANG") if name in os.environ
    }
    home = tmp_path / "home"
    home.mkdir()
    return {**kept, "HOME": str(home), "SESSIONLOG_DIR": str(tmp_path / "logs"), "ANTHROPIC_BASE_URL": provider.url}


@pytest.fixture
def started(surroundings, tmp_path):
    """Start `sessionlog run` in a process of its own."""
    processes = []

    def start(*words, script=None, through=(), **options):
        child = [sys.executable, "-c", script] if script else []
        command = [*through, sys.executable, "-m", "sessionlog", "run", *words, *child]
        kept = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": tmp_path}
        processes.append(subprocess.Popen(command, env=surroundings, **{**kept, **options}))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def session(folder):
    """(type, data) of the events in the only log of a folder."""
    [path] = Path(folder).glob("*.jsonl")
    assert [check.damage for check in check_logs(path)] == [()]
    return [(event.type, event.data) for event in read_events(path)]


def run(surroundings, tmp_path, script, **options):
    """Run a script in this process's group, with this process as its parent."""
    command = [sys.executable, "-c", script]
    return record_command(command, surroundings, directory=str(tmp_path / "logs"), note=lambda _: None, **options)


def test_a_run_is_a_session(surroundings, provider, tmp_path):
    """What was asked and answered, who ran, and how it ended."""
    ended = run(surroundings, tmp_path, f"{CLIENT}\nask('one'); ask('two')")
    assert (ended.exit_code, ended.requests, ended.refused, ended.health.ok, ended.notices) == (0, 2, 0, True, ())
    events = session(tmp_path / "logs")
    assert [kind for kind, _ in events] == [
        "session.start", "llm.request", "llm.response", "llm.request", "llm.response", "session.end",
    ]  # fmt: skip
    start, end = events[0][1], events[-1][1]
    name = os.path.basename(sys.executable)
    assert start["metadata"] == {"command": name, "recorder": "run"}
    assert (start["wire"], start["resolved_harness"], start["work_dir"]) == ("", name, os.getcwd())
    assert (end["status"], end["metadata"]["exit_code"], end["tokens"]["output"]) == ("success", 0, 40)
    assert "process_outcome" not in end
    assert [json.loads(body)["messages"][0]["content"] for _, path, _, body in provider.requests] == ["one", "two"]
    assert "5up3r" not in Path(ended.path).read_text()
    [row] = aggregate_usage(tmp_path / "logs", by=["harness", "status"]).rows
    assert (row.keys, row.requests) == ({"harness": name, "status": "success"}, 2)


def test_a_run_within_a_run_records_alone(surroundings, provider, tmp_path):
    """A request counts once: the inner run knows the agent; what is beside it is recorded by the outer one."""
    again = [sys.executable, "-m", "sessionlog", "run", "-q", "--", sys.executable, "-c", f"{CLIENT}\nask('in')"]
    ended = run(surroundings, tmp_path, f"{CLIENT}\nimport subprocess; subprocess.run({again})\nask('out')")
    assert (ended.exit_code, ended.requests) == (0, 1)
    assert [json.loads(body)["messages"][0]["content"] for _, _, _, body in provider.requests] == ["in", "out"]
    assert not [headers for _, _, headers, _ in provider.requests if RECORDED in headers]
    assert aggregate_usage(tmp_path / "logs").totals.requests == 2


@pytest.fixture
def qwen(surroundings, tmp_path):
    """A program of that name, whose settings have a model with an address."""
    program, settings = tmp_path / "qwen", tmp_path / "home" / ".qwen" / "settings.json"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    settings.parent.mkdir()
    settings.write_text('{"modelProviders": {"openai": [{"id": "m", "baseUrl": "http://127.0.0.1:9/v1"}]}}')
    return str(program)


def test_a_command_runs_although_there_is_no_room_for_its_settings(surroundings, tmp_path, monkeypatch, qwen):
    """A note names what is not recorded for it."""
    monkeypatch.setattr("tempfile.mkdtemp", Mock(side_effect=OSError(errno.ENOSPC, "No space left on device")))
    notes = []
    ended = record_command([qwen], surroundings, directory=str(tmp_path / "logs"), note=notes.append)
    assert ended.exit_code == 0
    assert "modelProviders are not recorded" in notes[-1]


def test_a_command_runs_where_the_folder_has_been_deleted(surroundings, tmp_path, monkeypatch, qwen):
    """As it would without us."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert record_command([qwen], surroundings, directory=str(tmp_path / "logs"), note=str).exit_code == 0


@pytest.mark.parametrize(("script", "code", "status", "outcome"), [
    ("", 0, "success", None), ("raise SystemExit(3)", 3, "error", "exit 3"), ("raise SystemExit(255)", 255, "error", "exit 255"),
    ("import os; os.kill(os.getpid(), 9)", 137, "cancelled", "SIGKILL"),
    ("import os; os.kill(os.getpid(), 15)", 143, "cancelled", "SIGTERM"),
    ("import os, resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); os.kill(os.getpid(), 11)", 139, "error", "SIGSEGV"),
    ("raise SystemExit(130)", 130, "cancelled", "SIGINT"),
])  # fmt: skip
def test_the_exit_code_is_the_command_s(surroundings, tmp_path, script, code, status, outcome):
    """128 + N if signal N ended it; the session has it too."""
    assert run(surroundings, tmp_path, script).exit_code == code
    end = session(tmp_path / "logs")[-1][1]
    assert (end["status"], end.get("process_outcome"), end["metadata"]["exit_code"]) == (status, outcome, code)


@pytest.mark.parametrize(("word", "code", "text"), [
    ("no-such-command", 127, "command not found"), ("/no/such/command", 127, "command not found"),
    ("{folder}/plain", 126, "not executable"), ("{folder}/broken", 126, "Exec format error"),
    ("{folder}/lost", 127, "No such file"),
])  # fmt: skip
def test_a_command_that_cannot_be_started(surroundings, tmp_path, word, code, text):
    """The exit codes of a shell, and a sentence."""
    for name, content, mode in (
        ("plain", "x", 0o600),
        ("broken", "\0", 0o700),
        ("lost", "#!/no/such/program\n", 0o700),
    ):
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(mode)
    with pytest.raises(CommandNotStarted, match=text) as failed:
        record_command([word.format(folder=tmp_path)], surroundings, directory=str(tmp_path / "logs"), note=print)
    assert failed.value.code == code
    if (tmp_path / "logs").exists():
        assert session(tmp_path / "logs")[-1][1]["status"] == "error"


def test_a_route_leads_where_the_user_says(surroundings, provider, tmp_path):
    """`--upstream`: a route that the agent has not is refused before anything starts."""
    surroundings["ANTHROPIC_BASE_URL"] = "http://127.0.0.1:9"
    upstreams = {"anthropic": f"{provider.url}/below"}
    assert run(surroundings, tmp_path, f"{CLIENT}\nask('x')", upstreams=upstreams).requests == 1
    assert provider.requests[0][1] == f"/below{MESSAGES}"
    for wrong in ({"nowhere": provider.url}, {"anthropic": "not a url"}, {"anthropic": "ftp://x"}):
        with pytest.raises(InvalidSettings):
            run(surroundings, tmp_path, "raise SystemExit(9)", upstreams=wrong)


def test_p01_a_full_disk_does_not_stop_the_command(surroundings, provider, tmp_path):
    """The events are counted as lost."""
    (tmp_path / "file").write_text("")
    ended = record_command(
        [sys.executable, "-c", f"{CLIENT}\nask('x')"], surroundings, directory=str(tmp_path / "file"), note=print
    )
    assert (ended.exit_code, ended.requests, len(provider.requests)) == (0, 0, 1)
    assert ended.health.dropped == ended.health.emitted
    assert "event not recorded" in ended.notices[0]


def test_what_is_too_large_to_record_is_named_at_the_end(started, provider):
    """With its cause; the command has its answer."""
    provider.answer = lambda handler: handler.reply(b"[" + b"[]," * (1 << 19) + b"[]]")
    process = started("--", script=f"{CLIENT}\nask('x')")
    err = process.communicate(timeout=20)[1].decode()
    assert process.returncode == 0
    assert "event not recorded (integration: a JSON text of 1,572,868 bytes with more than 1,048,576 values)" in err
    assert "events were not recorded (integration): " in err


def test_a_log_that_cannot_be_written_is_one_sentence(started, tmp_path):
    """With the place, the cause and the next step; a log that is not there is not replayed."""
    (tmp_path / "file").write_text("")
    process = started("--dir", str(tmp_path / "file"), "--", script=f"{CLIENT}\nask('x')")
    text = process.communicate()[1].decode()
    [line] = [line for line in text.splitlines() if str(tmp_path / "file") in line]
    assert line.startswith(f"sessionlog: nothing was recorded: {tmp_path}/file/")
    assert line.endswith(".jsonl cannot be written (ENOTDIR); --dir FOLDER records elsewhere")
    assert "replay" not in text
    assert process.returncode == 0


def test_an_answer_under_way_at_the_end_is_read(surroundings, provider, tmp_path):
    """The command has left; the usage still comes."""

    def answer(handler):
        handler.begin()
        for event in wire.MESSAGE_EVENTS[:9]:
            handler.piece(wire.sse(event, named=True))
        handler.piece(b": more\n\n" * 1000)
        for event in wire.MESSAGE_EVENTS[9:]:
            handler.piece(wire.sse(event, named=True))
        handler.piece(b"")

    provider.answer = answer
    assert run(surroundings, tmp_path, LEAVING).requests == 1
    [data] = [data for kind, data in session(tmp_path / "logs") if kind == "llm.response"]
    assert data["usage"]["output"] == 20
    assert "partial" not in data


def stall(provider, until):
    """Let the provider's next answer begin, and wait within it for an event."""

    def answer(handler):
        handler.begin()
        handler.piece(wire.sse(wire.MESSAGE_EVENTS[0], named=True))
        assert until.wait(20)
        handler.piece(b"")

    provider.answer = answer


WAITS = "reading the last answers; Ctrl-C stops that"


def test_a_wait_for_the_last_answers_has_a_note(surroundings, provider, tmp_path, monkeypatch):
    """One, when it takes a while: the answer goes on once the note is there."""
    monkeypatch.setattr("sessionlog.proxy.run.NOTE_SECONDS", 0.01)
    noted, notes = threading.Event(), []
    stall(provider, noted)
    command = [sys.executable, "-c", LEAVING]

    def note(text):
        notes.append(text)
        if text == WAITS:
            noted.set()

    ended = record_command(command, surroundings, directory=str(tmp_path / "logs"), note=note)
    assert (ended.requests, notes.count(WAITS)) == (1, 1)


def test_a_run_without_last_answers_has_no_note(surroundings, tmp_path):
    """It ends at once."""
    notes = []
    record_command([sys.executable, "-c", ""], surroundings, directory=str(tmp_path / "logs"), note=notes.append)
    assert WAITS not in notes


def test_streams_are_the_command_s(started, tmp_path):
    """Input, output and errors are untouched; one line of ours comes last."""
    process = started("--", script="import sys; sys.stdout.write(sys.stdin.read().upper()); sys.stderr.write('err')")
    out, err = process.communicate(b"abc\n")
    assert out == b"ABC\n"
    assert err.startswith(b"err")
    assert b"sessionlog: recorded no requests to models: sessionlog replay 2" in err
    assert process.returncode == 0


def test_quiet_prints_nothing(started):
    """Not even a note before."""
    process = started("-q", "--", script="import sys; sys.exit(4)")
    assert process.communicate() == (b"", b"")
    assert process.returncode == 4


def test_the_last_line_has_the_sums(started, provider, surroundings):
    """Requests, tokens and what they cost."""
    provider.answer = lambda handler: handler.reply({**wire.MESSAGE, "model": "claude-haiku-4-5"})
    process = started("--", script=f"{CLIENT}\nask('one')")
    err = process.communicate()[1].decode()
    assert "recorded 1 request, 127 tokens" in err
    session_id = err.split("sessionlog replay ")[1].strip()
    assert "Let me look." in report(surroundings, "replay", session_id, "--plain")


def test_a_run_starts_without_what_it_does_not_need(surroundings, tmp_path):
    """Neither the parser of help nor what paints tables is loaded, from the command line to the last line."""
    code = "import sys; from sessionlog.cli import main; code = main(['run', 'true']); print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], env=surroundings, capture_output=True, text=True, check=True)
    assert "recorded no requests" in ran.stderr
    assert {"typer", "rich", "sqlite3", "msgspec"}.isdisjoint(name.split(".")[0] for name in ran.stdout.split())


def report(surroundings, *words):
    """The output of a command of ours."""
    command = [sys.executable, "-m", "sessionlog", *map(str, words)]
    ran = subprocess.run(command, env=surroundings, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


TALK = f"""{CLIENT}
def talk(*messages, model="claude-haiku-4-5"):
    body = {{"model": model, "system": "Be brief. " * 400, "messages": [*messages]}}
    url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
    json.load(urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), {{"x": "y"}})))
first = {{"role": "user", "content": "What does a.py do?"}}
called = {{"role": "assistant", "content": [{{"type": "tool_use", "id": "toolu_1", "name": "read", "input": {{"path": "a.py"}}}}]}}
result = {{"role": "user", "content": [{{"type": "tool_result", "tool_use_id": "toolu_1", "content": "print(table)"}}]}}
talk(first)
talk(first, called, result)
talk(first, called, result, model="claude-opus-4-5")
"""
"""A request with a tool call as its answer, one with the result, and the same to another model."""


def test_every_report_reads_the_session(surroundings, provider, tmp_path):
    """`usage`, `replay` with the tool's result, and `context --cache`, which names the change of model."""
    usage = {
        "input_tokens": 100,
        "output_tokens": 20,
        "cache_read_input_tokens": 0,
        "cache_creation_input_tokens": 1000,
    }
    cached = {**usage, "cache_read_input_tokens": 1000, "cache_creation_input_tokens": 0}
    done = {
        "role": "assistant",
        "type": "message",
        "content": [{"type": "text", "text": "A table."}],
        "stop_reason": "end_turn",
    }
    answers = [
        {**wire.MESSAGE, "id": "msg_1", "model": "claude-haiku-4-5", "usage": usage},
        {**done, "id": "msg_2", "model": "claude-haiku-4-5", "usage": cached},
        {**done, "id": "msg_3", "model": "claude-opus-4-5", "usage": usage},
    ]
    provider.answer = lambda handler: handler.reply(answers[len(provider.requests) - 1])
    path = run(surroundings, tmp_path, TALK).path
    used = json.loads(report(surroundings, "usage", path, "--by", "model", "--json"))
    assert {row["model"]: (row["requests"], row["cache_read_tokens"]) for row in used["rows"]} == {
        "claude-haiku-4-5": (2, 1000),
        "claude-opus-4-5": (1, 0),
    }
    assert used["totals"]["sessions"] == 1
    shown = report(surroundings, "replay", path, "--plain")
    assert shown.count("What does a.py do?") == 1
    assert "print(table)" in shown
    assert shown.count("A table.") == 2
    assert "claude-haiku-4-5 → claude-opus-4-5" in report(surroundings, "context", path, "--cache")
    assert [check.damage for check in check_logs(path)] == [()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=lambda number: number.name)
def test_a_signal_to_the_run_reaches_the_command(started, tmp_path, number):
    """It ends as it would have; without a terminal an interrupt is passed on, too."""
    process = started(
        "-q", "--", script=SIGNALS, preexec_fn=lambda: signal.signal(number, signal.SIG_DFL)
    )  # not nohup's
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    assert process.stdout.readline() == f"got {number.value}\n".encode()
    assert process.wait(20) == 40 + number
    assert session(tmp_path / "logs")[-1][1]["status"] == "error"


def test_a_signal_that_ends_the_command_is_a_cancellation(started, tmp_path):
    """128 + N, as a shell has it."""
    process = started("-q", "--", script=FOREVER)
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 143
    assert session(tmp_path / "logs")[-1][1]["status"] == "cancelled"


def test_a_signal_that_is_ignored_stays_ignored(started, tmp_path):
    """As under nohup: the command inherits that."""
    ask = "import signal; print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, signal.getsignal(signal.SIGPIPE) == signal.SIG_IGN)"
    process = started("-q", "--", script=ask, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    assert process.communicate()[0].split() == [b"True", b"True"]  # Python itself ignores SIGPIPE
    assert process.returncode == 0


@contextmanager
def terminal(started, script, through=()):
    """A run whose streams are a terminal, which it controls; yields the process and the other end."""
    ours, theirs = pty.openpty()
    process = started(
        "-q", "--", script=script, through=through, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(theirs)
    try:
        yield process, ours
    finally:
        os.close(ours)


def read_until(fd, text):
    """Read a terminal until a text stands there."""
    seen = b""
    while text not in seen:
        try:
            piece = os.read(fd, 1000)
        except OSError:  # Linux's end of a terminal: EIO
            piece = b""
        assert piece, f"{text!r} does not come; {seen!r} did"
        seen += piece
    return seen


def test_ctrl_c_reaches_the_command_once(started, tmp_path):
    """From its terminal; the run goes on until the command ends by itself."""
    script = """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
os.write(1, b"ready")
signal.sigwait({signal.SIGINT})
os.write(1, b"interrupted")
again = signal.sigtimedwait({signal.SIGINT}, 0.1)
os.write(1, b"again" if again else b"once, got %b" % os.read(0, 100))
raise SystemExit(6)
"""
    with terminal(started, script) as (process, ours):
        read_until(ours, b"ready")
        os.write(ours, b"\x03")
        read_until(ours, b"interrupted")
        os.write(ours, b"end\n")
        read_until(ours, b"once, got end")
        assert process.wait(20) == 6


SHELL = """
import os, signal, subprocess, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
job = subprocess.Popen(sys.argv[1:], process_group=0, preexec_fn=lambda: signal.signal(signal.SIGTTOU, signal.SIG_DFL))
os.tcsetpgrp(0, job.pid)
_, status = os.waitpid(job.pid, os.WUNTRACED)
os.tcsetpgrp(0, os.getpgrp())
os.write(1, b"stopped %d" % os.WIFSTOPPED(status))
signal.sigwait({signal.SIGUSR1})
os.tcsetpgrp(0, job.pid)
os.killpg(job.pid, signal.SIGCONT)
raise SystemExit(job.wait())
"""
"""What a shell does with a job that Ctrl-Z stops and `fg` continues."""


@pytest.mark.parametrize(("has_terminal", "passed"), [(True, []), (False, [signal.SIGINT])], ids=["terminal", "none"])
def test_an_interrupt_of_a_terminal_is_not_repeated(monkeypatch, has_terminal, passed):
    """The terminal sends it to the command itself; without one it comes to the run alone, and goes on."""
    monkeypatch.setattr(os, "isatty", lambda _: has_terminal)
    sent = []
    running = SimpleNamespace(send_signal=sent.append)
    with _signals_for([running], []):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
    assert sent == [*passed, signal.SIGTERM]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_signal_before_the_command_is_kept_for_it():
    """It is sent as soon as there is a process."""
    early = []
    with _signals_for([], early):
        signal.raise_signal(signal.SIGTERM)
    assert early == [signal.SIGTERM]


def test_ctrl_z_stops_the_run_and_fg_continues_it(started):
    """With the command: it asks for its input again, and ends as it would have."""
    script = "import os; os.write(1, b'ready'); os.write(1, b'got %b' % os.read(0, 100)); raise SystemExit(9)"
    with terminal(started, script, through=[sys.executable, "-c", SHELL]) as (process, ours):
        read_until(ours, b"ready")
        os.write(ours, b"\x1a")
        read_until(ours, b"stopped 1")
        process.send_signal(signal.SIGUSR1)
        os.write(ours, b"word\n")
        read_until(ours, b"got word")
        assert process.wait(20) == 9


def test_the_command_has_the_terminal(started):
    """It is in the foreground, and can ask its size."""
    script = "import os; print(os.isatty(0), os.tcgetpgrp(0) == os.getpgrp(), os.get_terminal_size(0) is not None)"
    with terminal(started, script) as (process, ours):
        assert b"True True True" in read_until(ours, b"True True True")
        assert process.wait(20) == 0


def test_a_second_interrupt_ends_the_wait_for_answers(surroundings, tmp_path, monkeypatch):
    """When the command is gone, Ctrl-C is the run's own."""
    closed = []

    def close(server, seconds=0.0):
        closed.append(seconds)
        if seconds:
            raise KeyboardInterrupt

    monkeypatch.setattr("sessionlog.proxy.server.ProxyServer.close", close)
    assert run(surroundings, tmp_path, "").exit_code == 0
    assert closed[:2] == [5.0, 0.0]
