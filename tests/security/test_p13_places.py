"""P13: wherever a path comes from, what is there is opened only if it is a regular file; nothing waits for a pipe."""

import os
import signal
import socket
import stat
from pathlib import Path

import pytest

from sessionlog.cli import options
from tests.reliability.children import in_child
from tests.security.commands import NOW, STORY, run
from tests.security.every_command import NAMES, all_commands, build_logs, run_line
from tests.turns import by_turns

SECONDS = 20


def make(path, what):
    """Put something that is no regular file at a path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if what == "fifo":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    elif what == "endless":
        path.symlink_to("/dev/zero")
    elif what == "loop":
        path.symlink_to(path.name)
    elif what == "device":
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))
    elif what == "socket":
        here = os.getcwd()
        os.chdir(path.parent)  # a socket's path may have 107 bytes only
        try:
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(path.name)
        finally:
            os.chdir(here)


WHAT = ("fifo", "folder", "endless", "loop", "socket", "device")


def run_with_limits(*arguments, **env):
    """Run a command in a child that ends where it waits for a pipe or reads a file without end; (code, stderr)."""

    def work():
        import resource

        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS)
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
        os.environ.update({name: str(value) for name, value in env.items()})
        ended = run_line([*map(str, arguments)])
        return ended.code, ended.err.decode()

    return in_child(work)


PLACES = {
    "a log": lambda path: (["replay", path, "--plain"], {}),
    "a log of check": lambda path: (["check", path], {}),
    "a log to repair": lambda path: (["check", "--repair", path], {}),
    "a log to scrub": lambda path: (["scrub", path], {}),
    "a log to compare": lambda path: (["diff", STORY, path], {}),
    "a log of context": lambda path: (["context", path], {}),
    "config.toml": lambda path: (["usage", "--now", NOW], {"SESSIONLOG_CONFIG": path}),
    "prices": lambda path: (["usage", "--now", NOW, "--prices", path], {}),
    "the ledger": lambda path: (["usage", "--now", NOW, "--ledger", path], {}),
    "the ledger to ask": lambda path: (["sql", "SELECT 1", "--ledger", path], {}),
    "the ledger's folder": lambda path: (["usage", "--now", NOW, "--ledger", f"{path}/ledger.sqlite"], {}),
    "the folder of sessions": lambda path: (["sessions", "--now", NOW], {"SESSIONLOG_DIR": path}),
    "clean copies": lambda path: (["scrub", STORY, "--write", path], {}),
    "a backup": lambda path: (["ledger", "backup", path], {}),
    "the status line's budget": lambda path: (["status", "--now", NOW], {"XDG_STATE_HOME": path}),
    "where data is kept": lambda path: (["usage", "--now", NOW], {"XDG_DATA_HOME": path}),
    "the archive": lambda path: (["archive", "--now", NOW], {"XDG_DATA_HOME": path}),
    "a log of the router": lambda path: (["routing-quality", path, "--now", NOW], {}),
    "a log to audit": lambda path: (["audit", path], {}),
    "own prices": lambda path: (["pricing", "claude-opus-4-5", "--prices", path], {}),
    "a page": lambda path: (["report", "--html", path, "--now", NOW], {}),
    "pages": lambda path: (["report", "--html", f"{path}.html", "--pages", path, "--now", NOW], {}),
    "a team's place": lambda path: (["export", path, "--parquet"], {}),
    "where a run is recorded": lambda path: (["run", "--dir", path, "--", "true"], {}),
    "where a chat is recorded": lambda path: (["chat", "tests.security.every_command:answer", "--dir", path], {}),
    "an agent's file": lambda path: (["chat", f"{path}:answer"], {}),
    "a hook's settings": lambda path: (["guard", "--install", "claude-code", "--write"], {"CLAUDE_CONFIG_DIR": path}),
    "a demonstration": lambda path: (["demo", "--dir", path], {}),
}


def _ledger_of(name):
    """A command's first line, with a place for its ledger; what else it writes is beside that."""
    words = name.split()

    def place(path):
        lines = all_commands(Path(path).parent / "own")
        return [*next(line for line in lines if line[: len(words)] == words), "--ledger", path], {}

    return place


HAVE_LEDGER = {name for name, known in options.COMMANDS.items() if any(one.name == "--ledger" for one in known)}
PLACES |= {f"the ledger of {name}": _ledger_of(name) for name in sorted(HAVE_LEDGER)}


def test_p13_every_command_has_a_place():
    """A new command cannot be left out."""
    lines = [" ".join(map(str, place("")[0])) for place in PLACES.values()]
    assert [name for name in NAMES if not any(f"{line} ".startswith(f"{name} ") for line in lines)] == []


PAIRS = [(place, what) for place in PLACES for what in WHAT]


@pytest.fixture(scope="module", autouse=True)
def _modules_loaded(tmp_path_factory):
    """Children need not import what each command needs: that would be most of their time."""
    folder = tmp_path_factory.mktemp("nowhere")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "SESSIONLOG_DIR"):
            patch.setenv(name, str(folder / name.lower()))
        patch.chdir(folder)
        for command in {place("")[0][0] for place in PLACES.values()}:
            run(command, "nowhere")


@pytest.mark.parametrize(("place", "what"), by_turns(PAIRS, 10))
def test_p13_no_place_is_opened_that_is_no_file(tmp_path, place, what):
    """The command ends at once, with a sentence or without the file; nothing is written through it."""
    if what == "device" and os.geteuid() != 0:
        pytest.skip("making a device needs root")
    path = tmp_path / "place" / "it"
    make(path, what)
    arguments, env = PLACES[place](path)
    code, err = run_with_limits(*arguments, **env)
    assert code in {0, 1, 2, 3}, err
    assert "Traceback" not in err
    assert "MemoryError" not in err
    if what != "folder":
        assert not stat.S_ISREG(os.lstat(path).st_mode)


@pytest.mark.parametrize(
    ("what", "turn"), by_turns([(what, turn) for turn in range(4) for what in ("fifo", "endless")], 2)
)
def test_p13_no_file_of_an_agent_is_waited_for(tmp_path, monkeypatch, what, turn):
    """Each file that an agent keeps is replaced; every command ends all the same."""
    home, own = build_logs(tmp_path, monkeypatch)
    paths = [path for path in sorted(home.rglob("*")) if path.is_file()]
    assert len(paths) > 10
    for path in paths:
        path.unlink()
        make(path, what)
    wrong = {}
    for line in all_commands(own)[turn::4]:
        code, err = run_with_limits(*line)
        if code not in {0, 1, 3} or "Traceback" in err:
            wrong[" ".join(line)] = code, err
    assert wrong == {}
