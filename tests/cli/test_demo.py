"""`sessionlog demo`: one command that shows every report, and commands that can be typed afterwards."""

import re
import shlex
import tempfile

HEADING = re.compile(r"^\$ sessionlog (.*)$", re.MULTILINE)


def test_every_report_is_shown_on_the_folder(cli, tmp_path):
    """What three agents left first, a recorded session, routing last; each under the command that makes it."""
    folder = tmp_path / "demo"
    ran = cli("demo", "--dir", folder)
    assert (ran.code, ran.err) == (0, "")
    commands = [shlex.split(line) for line in HEADING.findall(ran.out)]
    assert [words[0] for words in commands] == ["usage", "usage", "sessions", "tools", "replay", "routing-quality"]
    for text in ("Usage · all time · 4 sessions", "claude-sonnet-4-5", "gpt-5.3-codex", "gemini-2.5-pro", "exec_command",
                 "you ▸ make the importer resume after a crash", "bedrock → anthropic", "override disagreed"):  # fmt: skip
        assert text in ran.out
    assert f"the logs stay in {folder}.\n" in ran.out
    for words in commands:
        if words[0] == "replay":
            continue  # it has the next test
        assert cli(*words).out in ran.out


def test_the_commands_can_be_typed(cli, tmp_path):
    """Also when the folder's name needs quotes."""
    ran = cli("demo", "--dir", tmp_path / "a b")
    [replay] = [words for words in map(shlex.split, HEADING.findall(ran.out)) if words[0] == "replay"]
    assert cli(*replay).out in ran.out


def test_a_folder_of_its_own(cli, tmp_path, monkeypatch):
    """Without --dir a temporary folder is made, for the user alone, and named."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ran = cli("demo")
    [folder] = tmp_path.glob("sessionlog-demo-*")
    assert ran.code == 0
    assert f"the logs stay in {folder}.\n" in ran.out
    assert folder.stat().st_mode & 0o777 == 0o700
    assert sorted(path.name for path in folder.iterdir()) == ["agents", "sessions"]
    assert len(list((folder / "sessions").iterdir())) == 6


def test_a_folder_that_cannot_be_written_exits_3(cli, tmp_path):
    """Said before a report could be about nothing."""
    (tmp_path / "file").write_text("")
    ran = cli("demo", "--dir", tmp_path / "file")
    assert (ran.code, ran.out) == (3, "")
    assert str(tmp_path / "file") in ran.err


def test_a_hostile_folder_is_escaped(cli, tmp_path):
    """The name is shown, and does nothing."""
    ran = cli("demo", "--dir", tmp_path / "\x1b[31mred")
    assert ran.code == 0
    assert "\x1b" not in ran.out + ran.err
    assert r"\x1b[31mred" in ran.out
