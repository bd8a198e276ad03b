"""Hostile names, packed logs, bombs, pipes and loops: folders that somebody else has prepared."""

import os
import socket
from contextlib import suppress

import pytest

from tests.security.commands import NOW, RUNS, command_lines, judge, run
from tests.security.fragments import MARKUP, TERMINAL
from tests.security.hostile import EVIL, logs, session
from tests.security.hostile_bytes import FILE_NAMES, HEAVY, byte_logs, packed
from tests.turns import by_turns


def write(folder, name, content):
    """Write a file whose name may be any bytes; some systems refuse some names."""
    path = os.path.join(os.fsencode(folder), name)
    with open(path, "wb") as file:
        file.write(content)
    return os.fsdecode(path)


@pytest.fixture
def named(tmp_path):
    """A folder in which each hostile name is a log: the folder and the paths."""
    folder = tmp_path / "names"
    folder.mkdir()
    paths = []
    for name in FILE_NAMES:
        with suppress(OSError):  # macOS takes no invalid UTF-8
            paths.append(write(folder, name, session() + b"damaged\n"))
    return str(folder), paths


@pytest.mark.usefixtures("scanned_once")
def test_p18_a_folder_of_hostile_names(named):
    """Reports over all of them name sessions and damaged files without obeying a name."""
    folder, paths = named
    for arguments in command_lines(folder):
        outcome = run(*arguments)
        judge(arguments, outcome)
        assert outcome.code in {0, 1}
    by_session = run("usage", folder, "--csv", "--by", "session", "--now", NOW)
    assert by_session.out.count(b",fizeau") == 0
    assert len(paths) > 15


@pytest.mark.parametrize("steps", [2, pytest.param(1, marks=pytest.mark.slow)])
def test_p18_each_hostile_name_alone(named, steps):
    """A name is shown by the commands that are given it, even when it is not UTF-8; quick: by one half, in turns."""
    for turn, path in enumerate(named[1]):
        for arguments in command_lines(path, first_only=True, commands=[*RUNS][turn % steps :: steps]):
            outcome = run(*arguments)
            judge(arguments, outcome)
            assert outcome.code in {0, 1}


def test_a_session_is_found_by_a_hostile_prefix(named):
    """`replay PREFIX` answers, refuses, or lists the candidates, all of it as plain text."""
    folder, _ = named
    for prefix in ("a", "\x1b", "=", "\udcff", "'", "c", EVIL.replace("\x00", ""), "nobody\x9b2J"):
        arguments = ["replay", "--plain", "--dir", folder, "--", prefix]
        judge(arguments, run(*arguments))


@pytest.mark.usefixtures("scanned_once")
@pytest.mark.parametrize("has_turns", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", packed())
def test_packed_logs(name, has_turns, tmp_path):
    """Whole ones are read; cut, flipped and mislabelled ones give what can be read of them, and a finding.

    In the quick tier each log is shown in one format of each command, the next one in the next format.
    """
    path = write(tmp_path, name.encode(), packed()[name])
    for arguments in command_lines(path, turn=[*packed()].index(name) if has_turns else None):
        judge(arguments, run(*arguments))
    if name.startswith(("whole", "two-members", "zeros-after")):
        assert run("check", path).code == 0
    elif not name.startswith("empty"):
        assert run("check", path).code == 1


@pytest.mark.parametrize("name", by_turns(HEAVY, 2))
def test_heavy_logs(name, tmp_path):
    """Ten megabytes a line, and bombs that unpack to eighty: each command ends, and says what it left out."""
    path = write(tmp_path, name.encode(), HEAVY[name]())
    for arguments in command_lines(path, first_only=True, commands=["usage", "replay", "check"]):
        judge(arguments, run(*arguments))


@pytest.mark.timeout(30)
def test_p13_a_folder_of_traps(tmp_path):
    """Pipes, sockets, devices, loops and dangling links are passed over or named; nobody waits for them."""
    folder = tmp_path / "traps"
    (folder / "deep" / "deeper").mkdir(parents=True)
    (folder / "folder.jsonl").mkdir()
    write(folder, b"good.jsonl", session())
    os.mkfifo(folder / "pipe.jsonl")
    os.mkfifo(folder / "pipe.jsonl.gz")
    os.symlink(folder, folder / "deep" / "deeper" / "up")
    os.symlink("b.jsonl", folder / "a.jsonl")
    os.symlink("a.jsonl", folder / "b.jsonl")
    os.symlink("nowhere\x1b[2J", folder / "gone.jsonl")
    os.symlink("/dev/zero", folder / "zero.jsonl")
    os.symlink("good.jsonl", folder / "twice.jsonl")
    with socket.socket(socket.AF_UNIX) as listener, suppress(OSError):
        listener.bind(str(folder / "socket.jsonl"))
    for arguments in command_lines(str(folder)):
        outcome = run(*arguments)
        judge(arguments, outcome)
        assert outcome.code in {0, 1}
    assert b'"requests": 1,' in run("usage", str(folder), "--json", "--by", "source").out
    for name in ("pipe.jsonl", "zero.jsonl", "a.jsonl", "gone.jsonl", "folder.jsonl"):
        for arguments in command_lines(str(folder / name), first_only=True):
            judge(arguments, run(*arguments))


@pytest.mark.usefixtures("scanned_once")
def test_all_logs_in_one_report(tmp_path):
    """Hostile keys side by side: rows, totals and findings of a folder that holds every small log."""
    for name, content in {**logs(), **byte_logs()}.items():
        if len(content) < 30_000:
            write(tmp_path, f"{name}.jsonl".encode(), content)
    for arguments in command_lines(str(tmp_path)):
        judge(arguments, run(*arguments))


ARGUMENTS = [*TERMINAL, "rich-close", "rich-link", "percent", "dashes", "combining"]


@pytest.mark.parametrize("steps", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ARGUMENTS)
def test_p18_hostile_arguments(name, steps):
    """What is quoted back from the command line is plain text too, in answers and in errors; quick: of a quarter."""
    text = (
        {**TERMINAL, **MARKUP}[name]
        .replace("\x00", "")
        .encode("utf-8", "surrogatepass")
        .decode("utf-8", "surrogateescape")
    )
    command_lines_of_a_text = (
        ["pricing", "--", text],
        ["pricing", "--json", "--provider", text, "--", "claude-opus-4-5"],
        ["pricing", "claude-opus-4-5", f"--at={text}"],
        ["pricing", "x", f"--prices={text}"],
        ["usage", "--", text],
        ["usage", f"--since={text}"],
        ["usage", f"--by={text}"],
        ["usage", f"--sort={text}"],
        ["usage", f"--limit={text}"],
        ["usage", f"--tz={text}", "--since", "today"],
        ["usage", f"--model={text}"],
        ["sessions", f"--now={text}"],
        ["replay", "--", text],
        ["replay", "x", f"--speed={text}"],
        ["routing-quality", f"--axis={text}"],
        ["check", "--", text],
        ["usage", f"--nonsense{text}"],
        [text],
    )
    for arguments in command_lines_of_a_text[ARGUMENTS.index(name) % steps :: steps]:
        judge(arguments, run(*arguments))
