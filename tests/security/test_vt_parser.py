"""The checker itself: it catches each hostile sequence alone, and lets honest output through."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.render.escape import terminal
from tests.profiles import examples
from tests.security.fragments import TERMINAL
from tests.security.vt import OURS, findings


@pytest.mark.parametrize("name", TERMINAL)
@pytest.mark.parametrize("sgr", [False, True], ids=["pipe", "tty"])
def test_p18_every_hostile_sequence_is_caught(name, sgr):
    """Alone, inside a text, and twice, whether or not our own colours are allowed."""
    raw = TERMINAL[name].encode("utf-8", "surrogatepass")
    for output in (raw, b"before " + raw + b" after\n", raw + b"\n" + raw):
        assert findings(output, sgr=sgr, tab=True) != []


@pytest.mark.parametrize("name", TERMINAL)
def test_escaping_satisfies_the_checker(name):
    """What render.escape makes of each sequence is plain text."""
    assert findings(terminal(TERMINAL[name]).encode()) == []


@pytest.mark.parametrize(
    ("raw", "what"),
    [
        (b"\x1b[2J", "CSI 2J"),
        (b"\x1b[?25l", "CSI ?25l"),
        (b"\x1b[38;5;9m", "CSI 38;5;9m"),
        (b"\x1b[", "CSI (cut)"),
        (b"\x1b]0;title\x07", "OSC '0;title'"),
        (b"\x1b]52;c;aGk=\x1b\\", "OSC '52;c;aGk='"),
        (b"\x1bPq", "DCS 'q' without an end"),
        (b"\x1bc", "ESC 'c'"),
        (b"\x1b", "ESC ''"),
        (b"\x07", "C0 0x07"),
        (b"\x7f", "C0 0x7f"),
        (b"\xc2\x9b", "C1 0x9b"),
        ("\u202e".encode(), "hidden U+202E"),
        ("\U000e0041".encode(), "hidden U+E0041"),
        (b"\xff", "invalid UTF-8: b'\\xff'"),
        (b"\x9b2J", "invalid UTF-8: b'\\x9b2J'"),
    ],
)
def test_findings_are_named(raw, what):
    """A failing test says which sequence came out, and where."""
    (finding,) = findings(b"ok " + raw, sgr=True)
    assert finding == (3, what)


@pytest.mark.parametrize("code", sorted(OURS))
def test_our_colours_need_a_terminal(code):
    """The theme's sequences are text on a tty, and a finding in a pipe."""
    line = f"\x1b[{code}mok\x1b[0m\n".encode()
    assert findings(line, sgr=True) == []
    assert [finding.what for finding in findings(line)] == [f"CSI {code}m", "CSI 0m"]


@pytest.mark.parametrize(
    "sequence", ["\x1b[8m", "\x1b[5m", "\x1b[7m", "\x1b[1;8m", "\x1b[m", "\x1b[31;47m", "\x1b[1 m"]
)
def test_colours_that_are_not_ours_are_caught(sequence):
    """A log's own SGR, which could conceal or blink, is never mistaken for the theme's."""
    assert findings(f"{sequence}text".encode(), sgr=True) != []


@pytest.mark.parametrize(
    "text",
    ["", "\n", "total  $4.10 ─── ✘ ◂ ⚙ │ … “”", "日本語 עברית العربية ก็ 👍🏽 🇩🇪 ❤️", "é e\u0301 ½ \xa0", "a\n\nb"],
)
def test_honest_output_passes(text):
    """Figures, frames, signs, emoji and every script."""
    assert findings(text.encode()) == []


def test_a_tab_is_a_matter_of_the_caller():
    """Tables have none, and texts shown with their lines may."""
    assert [finding.what for finding in findings(b"a\tb")] == ["C0 0x09"]
    assert findings(b"a\tb", tab=True) == []


@examples(200)
@given(st.text(st.characters(categories=("Cc", "Cf", "Cs", "Zl", "Zp")), min_size=1))
def test_escaping_leaves_nothing_for_the_checker(text):
    """For texts made of controls and format characters only, two independent lists agree."""
    assert findings(terminal(text).encode()) == []


def test_p18_no_control_character_is_forgotten():
    """Each character that Unicode calls a control, a format or a separator of lines is caught or is known to be drawn."""
    passed = []
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        if unicodedata.category(char) in {"Cc", "Cf", "Zl", "Zp"} and findings(char.encode()) == []:
            passed.append(code)
    drawn = [0x0A, *range(0x0600, 0x0606), 0x06DD, 0x070F, 0x0890, 0x0891, 0x08E2, 0x110BD, 0x110CD]
    assert [code for code in passed if code not in drawn] == []
    assert 0x0A in passed
