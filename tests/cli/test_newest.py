"""Without a name the newest session is meant: of this folder, else of all."""

import pytest
from typer.testing import CliRunner

from sessionlog.cli.app import build_app
from sessionlog.cli.output import USAGE
from tests.sources.logs import answered, asked, ended, start, write_log


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in a home of its own, in a folder of it."""
    for name in ("SESSIONLOG_DIR", "SESSIONLOG_LEDGER", "SESSIONLOG_CONFIG", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    def command(name, *arguments, folder="."):
        (tmp_path / folder).mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / folder)
        return CliRunner().invoke(build_app((name, "usage")), [name, *arguments], env={"TERM": "dumb"})

    return command


@pytest.fixture
def sessions(tmp_path):
    """Three sessions of two folders; the newest is of the folder `b`."""
    for number, folder in enumerate("aab"):
        clock = f"1{number}:00:0"
        write_log(
            tmp_path / ".local/state/sessionlog/sessions" / f"s{number}.jsonl",
            start(f"{clock}0", work_dir=str(tmp_path / folder)),
            asked(f"{clock}1", messages=[{"role": "user", "content": f"question {number}"}]),
            answered(f"{clock}2", content="ok", usage={"input": 10, "output": 5}),
            ended(f"{clock}3"),
        )


def test_the_newest_of_this_folder_is_shown(run, sessions):
    """And said so, beside the output."""
    result = run("replay", folder="a")
    assert "question 1" in result.stdout
    assert "native s1: the newest of this folder" in result.stderr
    assert "question 2" in run("replay", folder="b").stdout


def test_elsewhere_it_is_the_newest_of_all(run, sessions):
    """Also for context; one that is named is that one."""
    assert "question 2" in run("replay", folder="c").stdout
    result = run("context", folder="c")
    assert (result.exit_code, "native s2: the newest of all" in result.stderr) == (0, True)
    assert "question 0" in run("replay", "s0", folder="a").stdout


def test_diff_compares_the_newest_two(run, sessions):
    """The older on the left; one name alone is not enough."""
    result = run("diff", "--json", folder="a")
    assert "native s0, native s1: the newest of this folder" in result.stderr
    assert result.stdout.index('"s0"') < result.stdout.index('"s1"')
    assert run("diff", "s0", folder="a").exit_code == USAGE


def test_where_nothing_is_logged_the_demo_is_named(run):
    """The next step."""
    result = run("replay")
    assert result.exit_code == USAGE
    assert "sessionlog demo" in result.stderr


def test_an_empty_name_is_a_name(run, sessions):
    """As a script gives it where a variable is not set: that is an error."""
    assert run("replay", "", folder="a").exit_code != 0
    assert run("context", "", folder="a").exit_code != 0
