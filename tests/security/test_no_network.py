"""P26: nothing touches the network, by default, ever: not on logging, not on reading, not on reports."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

STORY = Path(__file__).parents[2] / "testdata" / "replay" / "story.jsonl"
WATCHED = """
import json, socket, sys
touched = []
def watch(event, args):
    is_local = event == "socket.__new__" and args[1] == socket.AF_UNIX  # pipes between our own processes
    if event.startswith("socket.") and not is_local or event in ("urllib.Request", "http.client.connect"):
        touched.append([event, repr(args[1:])])
        raise RuntimeError(f"{event} is not allowed")
sys.addaudithook(watch)
from sessionlog.cli import main
code = [main(arguments) for arguments in json.loads(sys.argv[2])]
with open(sys.argv[1], "w") as file:
    json.dump([code, touched], file)
"""
RUN = "code = [main(arguments) for arguments in json.loads(sys.argv[2])]"
COMMANDS = (
    ["usage"], ["usage", "--json", "--jobs", "2"], ["sessions"], ["tools"], ["blocks"], ["routing-quality"], ["sources"],
    ["status"], ["budget"], ["ledger"], ["ledger", "sync"], ["archive"], ["watch", "--once"], ["check"], ["pricing", "claude-opus-4-5"],
    ["sql", "SELECT 1"], ["sql", "--events", "SELECT max(text) FROM events"], ["replay", str(STORY), "--plain"], ["context", str(STORY)], ["diff", str(STORY), str(STORY)],
    ["demo"], ["--help"], ["--version"],
)  # fmt: skip


def environment(folder):
    """Nothing of this machine's."""
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": os.pathsep.join(sys.path), "LANG": "C.UTF-8"}


def watched(folder, commands):
    """(exit codes, what touched the network) of commands that share a process."""
    sessions = folder / ".local" / "state" / "sessionlog" / "sessions"
    sessions.mkdir(parents=True, exist_ok=True)
    shutil.copy(STORY, sessions)
    report = folder / "touched.json"
    command = [sys.executable, "-c", WATCHED, str(report), json.dumps(commands)]
    run = subprocess.run(
        command, env=environment(folder), cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert report.exists(), run.stderr
    return json.loads(report.read_text())


def test_p26_no_command_touches_the_network(tmp_path):
    """No name is looked up and no connection is made; the commands are fine without."""
    codes, touched = watched(tmp_path, COMMANDS)
    assert touched == []
    assert len(codes) == len(COMMANDS)
    assert set(codes) <= {0, 1}


@pytest.mark.slow
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_p26_no_command_by_itself_touches_the_network(tmp_path, arguments):
    """Nor with what it imports, in a process of its own."""
    codes, touched = watched(tmp_path, [arguments])
    assert touched == []
    assert set(codes) <= {0, 1}


def test_p26_the_logger_does_not_either(tmp_path):
    """Nor what is imported for it."""
    script = WATCHED.replace(RUN, "").replace("from sessionlog.cli import main", LOGGER)
    report = tmp_path / "touched.json"
    subprocess.run([sys.executable, "-c", script, str(report), str(tmp_path / "logs")], check=True, timeout=60)
    assert json.loads(report.read_text()) == [0, []]


LOGGER = """
from sessionlog import SessionLogger
with SessionLogger(sys.argv[2], durability="interval") as log:
    log.llm_request([{"role": "user", "content": "hello"}])
    log.llm_response({"usage": {"input": 1, "output": 2}})
code = 0
"""


def test_p26_the_watch_sees_what_it_looks_for(tmp_path):
    """Else these tests could not fail."""
    script = WATCHED.replace(
        RUN,
        "code = 0\ntry:\n    socket.getaddrinfo('localhost', 80)\nexcept RuntimeError:\n    code = 1",
    )
    report = tmp_path / "touched.json"
    subprocess.run([sys.executable, "-c", script, str(report)], check=True, timeout=60)
    code, touched = json.loads(report.read_text())
    assert (code, [event for event, _ in touched]) == (1, ["socket.getaddrinfo"])


def _own_network():
    """The command that starts a program in a network of its own, in which not even the loopback is up; or none."""
    for command in (["unshare", "-n"], ["unshare", "-rn"]):
        with suppress(OSError):
            if subprocess.run([*command, "true"], capture_output=True, timeout=10).returncode == 0:
                return command
    return []


def exit_codes(folder, *around):
    """The commands' exit codes in one process, which `around` may start."""
    folder.mkdir()
    script = f"import json, sys\nfrom sessionlog.cli import main\n{RUN}\nprint(json.dumps(code), file=sys.stderr)"
    command = [*around, sys.executable, "-c", script, "", json.dumps(COMMANDS)]
    run = subprocess.run(command, env=environment(folder), cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                         text=True, timeout=60)  # fmt: skip
    assert "Traceback" not in run.stderr
    return json.loads(run.stderr.splitlines()[-1])


def test_p26_the_commands_work_without_a_network(tmp_path):
    """In a network namespace that has no device: the kernel's word instead of Python's, for what C code might do."""
    command = _own_network()
    if not command:
        pytest.skip("a network namespace needs root, or user namespaces")
    assert exit_codes(tmp_path / "without", *command) == exit_codes(tmp_path / "with")


@pytest.mark.slow
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_p26_every_command_works_without_a_network(tmp_path, arguments):
    """The same for each in a process of its own."""
    command = _own_network()
    if not command:
        pytest.skip("a network namespace needs root, or user namespaces")
    ended = {}
    for name, around in (("with", []), ("without", command)):
        run = subprocess.run([*around, sys.executable, "-m", "sessionlog", *arguments], env=environment(tmp_path),
                             cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)  # fmt: skip
        ended[name] = run.returncode
        assert "Traceback" not in run.stderr
    assert ended["without"] == ended["with"]
