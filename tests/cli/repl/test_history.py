"""What was typed before: kept by line, private, and never in the way."""

import os
import stat

import pytest

from sessionlog.cli.repl import history
from sessionlog.cli.repl.history import MAX_TEXTS, InputHistory


@pytest.fixture
def typed(tmp_path):
    """A file in a state home of its own."""
    return InputHistory({"XDG_STATE_HOME": str(tmp_path / "state")})


def test_texts_come_back_in_their_order(typed):
    """Also those of several lines, and of any letters."""
    texts = ["one", "two\nlines", "日本 \x1b[2J", "🙂"]
    for text in texts:
        typed.add(text)
    assert typed.texts() == texts
    with open(typed.path, "rb") as file:
        assert len(file.read().splitlines()) == len(texts)


def test_only_its_owner_may_read_it(typed):
    """The file, and the folder that was made for it."""
    typed.add("a secret")
    assert stat.S_IMODE(os.stat(typed.path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(typed.path)).st_mode) == 0o700


def test_secrets_are_taken_out(typed):
    """Those of well-known shapes."""
    typed.add("my key is sk-abcdefghijklmnopqrstuvwxyz123456")
    assert typed.texts() == ["my key is [redacted]"]


def test_the_newest_are_kept(typed, monkeypatch):
    """A file that has grown long is cut, and stays private."""
    for number in range(MAX_TEXTS + 20):
        typed.add(f"text {number}") if number in {0, MAX_TEXTS} else None
    with open(typed.path, "ab") as file:
        file.writelines(f'"{number}"\n'.encode() for number in range(MAX_TEXTS + 5))
    assert typed.texts()[0] == "5"
    monkeypatch.setattr(history, "_MAX_BYTES", 1000)
    typed.add("last")
    monkeypatch.undo()
    with open(typed.path, "rb") as file:
        assert len(file.read().splitlines()) <= MAX_TEXTS + 1
    assert typed.texts()[-1] == "last"
    assert stat.S_IMODE(os.stat(typed.path).st_mode) == 0o600


def test_odd_lines_are_passed_over(typed):
    """Half a line, another program's, nothing."""
    typed.add("one")
    with open(typed.path, "ab") as file:
        file.write(b'\xff\xfe\n{"a": 1}\n7\n\n"half')
    typed.add("two")
    assert typed.texts() == ["one", "two"]


def test_a_file_that_cannot_be_had_is_none(tmp_path):
    """Nothing is raised for a convenience."""
    (tmp_path / "sessionlog").write_text("a file where a folder should be")
    typed = InputHistory({"XDG_STATE_HOME": str(tmp_path)})
    typed.add("one")
    assert typed.texts() == []
