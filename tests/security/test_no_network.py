"""P26: nothing touches the network, by default, ever: not on logging, not on reading, not on reports."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.security.every_command import all_commands, build_logs

WATCHED = """
import json, socket, sys
touched, loopback = [], False
def is_local(event, args):
    if event == "socket.__new__":
        return args[1] == socket.AF_UNIX or loopback  # pipes between our own processes
    if event in ("socket.getaddrinfo", "http.client.connect"):
        host = args[event != "socket.getaddrinfo"]
    else:
        host = args[1][0] if len(args) > 1 and isinstance(args[1], tuple) else None
    return loopback and host in ("127.0.0.1", "::1")
def watch(event, args):
    watched = event.startswith("socket.") or event in ("urllib.Request", "http.client.connect")
    if watched and not is_local(event, args):
        touched.append([event, repr(args[1:])])
        raise RuntimeError(f"{event} is not allowed")
sys.addaudithook(watch)
"""
RUN = """
from tests.security.every_command import run_line
codes = {}
for line in json.loads(sys.argv[2]):
    loopback = line[0] in ("run", "export")  # a proxy on this machine; urllib3 looks for IPv6 when it is imported
    outcome = run_line(line)
    codes[" ".join(line)] = outcome.code
    assert b"Traceback" not in outcome.err, outcome.err.decode()
"""
REPORT = """
with open(sys.argv[1], "w") as file:
    json.dump([codes, globals().get("touched", [])], file)
"""
LINES = [" ".join(line[:3]) for line in all_commands(Path("own"))]


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """Every command line, over the logs of several agents, and nothing of this machine's."""
    _, own = build_logs(tmp_path, monkeypatch)
    return all_commands(own)


def outcome_of(folder, script, *words, around=()):
    """What a script reports that runs in a process of its own."""
    report = folder / "report.json"
    kept = {name: value for name, value in os.environ.items() if name.startswith(("SESSIONLOG_", "XDG_", "HOME"))}
    env = kept | {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path), "LANG": "C.UTF-8"}
    command = [*around, sys.executable, "-c", script + REPORT, str(report), *words]
    run = subprocess.run(
        command, env=env, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
    )
    assert report.exists(), run.stderr
    return json.loads(report.read_text())


def run_commands(folder, lines, *, watched, around=()):
    """(exit code by command line, what touched the network) of commands that share a process."""
    return outcome_of(folder, (WATCHED if watched else "import json, sys\n") + RUN, json.dumps(lines), around=around)


def test_p26_no_command_touches_the_network(tmp_path, commands):
    """No name is looked up and no connection is made; the commands are fine without."""
    codes, touched = run_commands(tmp_path, commands, watched=True)
    assert touched == []
    assert len(codes) == len(commands)
    assert {line: code for line, code in codes.items() if code not in {0, 1, 3}} == {}


@pytest.mark.slow
@pytest.mark.parametrize("which", range(len(LINES)), ids=LINES)
def test_p26_no_command_by_itself_touches_the_network(tmp_path, commands, which):
    """Nor with what it imports, in a process of its own."""
    codes, touched = run_commands(tmp_path, [commands[which]], watched=True)
    assert touched == []
    assert set(codes.values()) <= {0, 1, 3}


def test_p26_the_logger_does_not_either(tmp_path):
    """Nor what is imported for it."""
    assert outcome_of(tmp_path, WATCHED + LOGGER, str(tmp_path / "logs")) == [{}, []]


LOGGER = """
from sessionlog import SessionLogger
with SessionLogger(sys.argv[2], durability="interval") as log:
    log.llm_request([{"role": "user", "content": "hello"}])
    log.llm_response({"usage": {"input": 1, "output": 2}})
codes = {}
"""


def test_p26_the_watch_sees_what_it_looks_for(tmp_path):
    """Else these tests could not fail; the loopback is allowed to few commands."""
    looked_up = """
codes = {}
for loopback, host in ((False, "localhost"), (False, "127.0.0.1"), (True, "127.0.0.1"), (True, "192.0.2.1")):
    try:
        socket.getaddrinfo(host, 80)
    except RuntimeError:
        codes[f"{loopback} {host}"] = 1
"""
    codes, touched = outcome_of(tmp_path, WATCHED + looked_up)
    assert list(codes) == ["False localhost", "False 127.0.0.1", "True 192.0.2.1"]
    assert [event for event, _ in touched] == ["socket.getaddrinfo"] * 3


def _own_network():
    """The command that starts a program in a network of its own, in which not even the loopback is up; or none."""
    for command in (["unshare", "-n"], ["unshare", "-rn"]):
        with suppress(OSError):
            if subprocess.run([*command, "true"], capture_output=True, timeout=10).returncode == 0:
                return command
    return []


def test_p26_the_commands_work_without_a_network(tmp_path, commands):
    """In a network namespace that has no device: the kernel's word instead of Python's, for what C code might do."""
    around = _own_network()
    if not around:
        pytest.skip("a network namespace needs root, or user namespaces")
    codes, _ = run_commands(tmp_path, commands, watched=False, around=around)
    assert {line: code for line, code in codes.items() if code not in {0, 1, 3}} == {}


@pytest.mark.slow
@pytest.mark.parametrize("which", range(len(LINES)), ids=LINES)
def test_p26_every_command_works_without_a_network(tmp_path, commands, which):
    """The same for each in a process of its own, which ends as with a network."""
    around = _own_network()
    if not around:
        pytest.skip("a network namespace needs root, or user namespaces")
    ended = [run_commands(tmp_path, [commands[which]], watched=False, around=one)[0] for one in ((), around)]
    assert ended[0] == ended[1]
