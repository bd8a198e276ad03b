"""Where lines come from: pipes, and a person with and without an editor of lines."""

import io
import sys
from types import SimpleNamespace

import pytest

from sessionlog.cli.repl import inputs as module
from sessionlog.cli.repl.history import InputHistory
from sessionlog.cli.repl.inputs import PipedInput, TerminalInput, valid_unicode

WORDS = ("/save", "/session", "/status", "/quit")


def piped(monkeypatch, content):
    """The lines of a pipe."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), "utf-8"))
    lines, found = PipedInput(), []
    while True:
        try:
            found.append(lines.read())
        except EOFError:
            return found


def test_each_line_of_a_pipe_is_a_text(monkeypatch):
    """Without its end, also the last one that has none."""
    assert piped(monkeypatch, b"one\ntwo\r\n\n three") == ["one", "two", "", " three"]


def test_bytes_that_are_no_text_become_a_sign(monkeypatch):
    """Nothing that an encoder would refuse gets through."""
    assert piped(monkeypatch, b"a\xffb\n") == ["a\ufffdb"]
    assert valid_unicode("a\udcffb") == "a\ufffdb"
    assert valid_unicode("é") == "é"


def test_no_stdin_is_an_end(monkeypatch):
    """A program may be started without one."""
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(EOFError):
        PipedInput().read()


class Editor:
    """readline, as far as it is used."""

    __doc__ = "GNU readline"

    def __init__(self):
        self.history, self.buffer, self.begin, self.bound = [], "", 0, []

    def add_history(self, text):
        self.history.append(text)

    def clear_history(self):
        self.history.clear()

    def get_line_buffer(self):
        return self.buffer

    def get_begidx(self):
        return self.begin

    def parse_and_bind(self, text):
        self.bound.append(text)

    def set_completer(self, function):
        self.completer = function

    def set_auto_history(self, enabled):
        assert not enabled

    def set_completer_delims(self, text):
        assert "/" not in text


@pytest.fixture
def editor(monkeypatch):
    """An editor of lines that types nothing by itself."""
    made = Editor()
    monkeypatch.setattr(module, "_readline", lambda: made)
    return made


@pytest.fixture
def typed(tmp_path):
    """The file of what was typed before."""
    return InputHistory({"XDG_STATE_HOME": str(tmp_path)})


def answers(monkeypatch, *texts):
    """What `input` gives, and which prompts it was given."""
    prompts, waiting = [], list(texts)

    def ask(prompt):
        prompts.append(prompt)
        text = waiting.pop(0)
        if isinstance(text, BaseException):
            raise text
        return text

    monkeypatch.setattr("builtins.input", ask)
    return prompts


def test_a_persons_line(monkeypatch, editor, typed):
    """It is remembered, in this chat and in later ones; the same text twice is remembered once."""
    prompts = answers(monkeypatch, "hello", "hello", " ", "bye")
    lines = TerminalInput(typed, WORDS, coloured=False)
    assert [lines.read() for _ in range(4)] == ["hello", "hello", " ", "bye"]
    assert editor.history == typed.texts() == ["hello", "bye"]
    assert len(set(prompts)) == 1
    assert prompts[0].startswith("you ")


def test_a_line_that_goes_on(monkeypatch, editor, typed):
    """A backslash at its end: the text has several lines, and its prompt says so."""
    prompts = answers(monkeypatch, "one\\", "two\\", "three")
    assert TerminalInput(typed, WORDS, coloured=False).read() == "one\ntwo\nthree"
    assert prompts[1] == prompts[2] != prompts[0]
    assert typed.texts() == ["one\ntwo\nthree"]


def test_an_end_below_a_line_that_goes_on(monkeypatch, editor, typed):
    """What was typed is a text; the next end is the end."""
    answers(monkeypatch, "one\\", EOFError(), EOFError())
    lines = TerminalInput(typed, WORDS, coloured=False)
    assert lines.read() == "one"
    with pytest.raises(EOFError):
        lines.read()


def test_what_was_typed_in_an_earlier_chat_comes_back(monkeypatch, editor, typed):
    """In the editor's history."""
    typed.add("earlier")
    TerminalInput(typed, WORDS, coloured=False)
    assert editor.history == ["earlier"]


@pytest.mark.parametrize(
    ("begin", "text", "found"),
    [(0, "/s", ["/save ", "/session ", "/status "]), (0, "/q", ["/quit "]), (0, "", []), (0, "s", []), (4, "/s", [])],
)
def test_words_are_completed_at_the_begin_of_a_line(editor, typed, begin, text, found):
    """And nowhere else: a path is a path."""
    lines, editor.begin = TerminalInput(typed, WORDS, coloured=False), begin
    given = []
    while (word := editor.completer(text, len(given))) is not None:
        given.append(word)
    assert given == found
    lines.close()
    assert editor.completer is None


def test_another_editor_is_bound_in_its_own_words(monkeypatch, typed):
    """That of macOS."""
    editor = Editor()
    editor.__doc__ = "libedit readline"
    monkeypatch.setattr(module, "_readline", lambda: editor)
    TerminalInput(typed, WORDS, coloured=False)
    assert editor.bound == ["bind ^I rl_complete"]


@pytest.mark.parametrize(("buffer", "empty"), [("", True), ("half a line", False)])
def test_ctrl_c_tells_whether_something_was_typed(monkeypatch, capsys, editor, typed, buffer, empty):
    """And leaves the prompt's row."""
    answers(monkeypatch, KeyboardInterrupt())
    lines, editor.buffer = TerminalInput(typed, WORDS, coloured=False), buffer
    with pytest.raises(KeyboardInterrupt):
        lines.read()
    assert lines.is_empty == empty
    assert capsys.readouterr().out == "\n"


def test_without_an_editor_lines_are_lines(monkeypatch, typed):
    """They are remembered for a chat that has one."""
    monkeypatch.setattr(module, "_readline", lambda: None)
    answers(monkeypatch, "hello", EOFError())
    lines = TerminalInput(typed, WORDS, coloured=True)
    assert lines.read() == "hello"
    with pytest.raises(EOFError):
        lines.read()
    lines.close()
    assert typed.texts() == ["hello"]


@pytest.mark.parametrize(
    ("stream", "locale", "sign"), [("utf-8", "UTF-8", "▸"), ("ascii", "UTF-8", ">"), ("utf-8", "C", ">")]
)
def test_the_prompt_speaks_what_terminal_and_editor_know(monkeypatch, editor, typed, stream, locale, sign):
    """The editor counts by the locale, the stream encodes."""
    monkeypatch.setattr(module.locale, "getencoding", lambda: locale)
    prompts = answers(monkeypatch, "hello")
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(encoding=stream, write=lambda _: None))
    TerminalInput(typed, WORDS, coloured=False).read()
    assert prompts == [f"you {sign} "]
