"""A terminal has an edge and colours; a file, a pipe and a closed stream have neither."""

import io
import os

import pytest

from sessionlog.render.console import make_console
from sessionlog.render.stream import PLAIN_WIDTH, plain_width

NAMES = ("COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE", "NO_COLOR", "TTY_INTERACTIVE")


class _Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def _bare(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


def test_a_terminal_is_its_consoles_business():
    """Its width and its colours are not known here."""
    assert plain_width(_Terminal()) is None


@pytest.mark.parametrize("name", ["FORCE_COLOR", "TTY_COMPATIBLE"])
def test_a_stream_that_is_said_to_be_a_terminal_is_one(monkeypatch, name):
    """Colours can be asked for."""
    monkeypatch.setenv(name, "1")
    assert plain_width(io.StringIO()) is None


@pytest.mark.parametrize(
    ("columns", "width"), [(None, PLAIN_WIDTH), ("80", 80), ("wide", PLAIN_WIDTH), ("", PLAIN_WIDTH)]
)
def test_a_pipe_is_as_wide_as_is_said(monkeypatch, columns, width):
    """The console would say the same."""
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    assert plain_width(io.StringIO()) == width == make_console(io.StringIO()).width


def test_a_closed_stream_is_no_terminal():
    """Asking it is an error of Python's, which stays here."""
    closed = io.StringIO()
    closed.close()
    assert plain_width(closed) == PLAIN_WIDTH


def test_a_pipe_is_no_terminal():
    """A real one."""
    reader, writer = os.pipe()
    with open(reader, encoding="utf-8"), open(writer, "w", encoding="utf-8") as stream:
        assert plain_width(stream) == PLAIN_WIDTH
