"""What a log says can be read and can do nothing, in each sink."""

import csv
import io
import re
import unicodedata
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from sessionlog.render import escape
from tests.profiles import examples

LAW = examples(200)

# Texts rich in what must not pass: every Unicode character, and often the dangerous ones.
DANGEROUS = "\x00\x07\x08\t\n\x0b\x0c\r\x1b\x7f\x80\x9b\x9d\xad\u061c\u200b\u200d\u200e\u2028\u202e\u2066\u2069\ufeff"
hostile = st.text(
    st.one_of(
        st.characters(exclude_categories=()), st.sampled_from(DANGEROUS + "\ud800\U000e0041\uffff|`*[]<>&=+-@'\"\\$:/")
    )
)


def is_forbidden(char):
    """The rule, said another way than the module says it: by Unicode's categories, less what is visible."""
    code = ord(char)
    if unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"}:
        return True
    if 0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE or 0xE0000 <= code <= 0xE0FFF:
        return True
    # Format characters that draw something: number signs of several scripts, and hieroglyphic joiners.
    visible = {
        0x06DD,
        0x070F,
        0x0890,
        0x0891,
        0x08E2,
        0x110BD,
        0x110CD,
        *range(0x0600, 0x0606),
        *range(0x13430, 0x13456),
    }
    return unicodedata.category(char) == "Cf" and code not in visible


@LAW
@given(hostile, st.booleans(), st.booleans())
def test_p18_nothing_that_acts_passes(text, newline, tab):
    """After escaping no forbidden code point is left but the lines and tabs that were allowed, and UTF-8 takes it."""
    allowed = ("\n" if newline else "") + ("\t" if tab else "")
    safe = escape.terminal(text, newline=newline, tab=tab)
    assert [char for char in safe if is_forbidden(char) and char not in allowed] == []
    assert safe.encode().decode() == safe


@LAW
@given(hostile, st.booleans(), st.booleans())
def test_escaping_twice_is_escaping_once(text, newline, tab):
    """A safe text is not touched, so a text that was escaped before stays as it is."""
    safe = escape.terminal(text, newline=newline, tab=tab)
    assert escape.terminal(safe, newline=newline, tab=tab) == safe


def test_p18_every_code_point():
    """Over the planes that have characters, exactly those that act or hide are replaced."""
    codes = [*range(0x20000), *range(0xE0000, 0xE1000), *(plane << 16 | 0xFFFF for plane in range(17))]
    replaced = {chr(code) for code in codes if escape.terminal(chr(code)) != chr(code)}
    forbidden = {chr(code) for code in codes if is_forbidden(chr(code))}
    assert forbidden <= replaced
    # Beyond the rule: letters and marks that show nothing, and unassigned places among the forbidden ranges.
    named = {char for char in replaced - forbidden if unicodedata.category(char) != "Cn"}
    named -= set(map(chr, range(0x13430, 0x13460)))  # format controls whose category differs from one Python to another
    assert named == set("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]52;c;cm0gLXJmIH4=\x07", r"\x1b]52;c;cm0gLXJmIH4=\x07"),  # writes the clipboard
        ("\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\", "\\x1b]8;;http://evil\\x1b\\click\\x1b]8;;\\x1b\\"),
        ("\x1b[2J\x1b[H", r"\x1b[2J\x1b[H"),  # clears the screen
        ("\x9b2J", r"\x9b2J"),  # the same in one C1 byte
        ("\x1bP$q\x1b\\", "\\x1bP$q\\x1b\\"),  # a device control string
        ("rm \u202etxt.exe", r"rm \u202etxt.exe"),
        ("a\u2066b\u2069", r"a\u2066b\u2069"),
        ("pass\u200bword", r"pass\u200bword"),
        ("hi\U000e0068\U000e0069", r"hi\U000e0068\U000e0069"),
        ("\ud83d", r"\ud83d"),
        ("over\rwrite", r"over\rwrite"),
        ("a\nb\tc", r"a\nb\tc"),
        ("abc\b\b", r"abc\x08\x08"),
    ],
)
def test_attacks_are_shown(text, shown):
    """A terminal attack is printed as what it was."""
    assert escape.terminal(text) == shown


@pytest.mark.parametrize(
    "text", ["", "plain", "größer → 漢字 · ✔ ⏎", "👍🏽 ❤️", "[bold]:smile:[/nope]", "a\xa0b", "\ue0b0"]
)
def test_clean_text_stays(text):
    """Words of any script, emoji, private symbols and markup characters are not changed."""
    assert escape.terminal(text) == text


def test_lines_and_tabs_pass_only_when_allowed():
    """A block keeps its lines and tabs; a carriage return never passes."""
    assert escape.terminal("a\n\tb\r\n", newline=True, tab=True) == "a\n\tb\\r\n"
    assert escape.terminal("a\n\tb", newline=True) == "a\n\\tb"
    assert escape.terminal("ä\n\tb", tab=True) == "ä\\n\tb"


@LAW
@given(hostile, st.integers(0, 40))
def test_one_line_fits(text, limit):
    """One line is one line, safe, and no longer than asked."""
    line = escape.one_line(text, limit)
    assert len(line) <= limit
    assert not any(is_forbidden(char) for char in line)


@pytest.mark.parametrize(
    ("text", "limit", "line"),
    [
        ("update the changelog", 40, "update the changelog"),
        ("  first\r\n\r\n   second\tthird\n", 40, "first⏎second third"),
        ("update the changelog", 10, "update th…"),
        ("update the changelog", 8, "update…"),
        ("abc\x1b[31m", 6, "abc…"),  # the escape does not fit, and is not shown in half
        ("cafe\u0301s", 5, "caf…"),  # nor is a letter without its accent
        ("a" * 10_000_000, 5, "aaaa…"),
        ("a" + "\n" * 10_000 + "b", 5, "a⏎…"),
        ("\x1c", 9, r"\x1c"),
        ("x", 1, "x"),
        ("xy", 1, "…"),
        ("xy", 0, ""),
    ],
)
def test_one_line(text, limit, line):
    """Line ends become a sign, blanks at the ends go, and a cut is marked."""
    assert escape.one_line(text, limit) == line


@LAW
@given(st.text(), st.integers(-1, 40))
def test_cut_adds_up(text, limit):
    """What is kept is a prefix within the limit, and with what was left out it is the whole."""
    kept, left_out = escape.cut(text, limit)
    assert text.startswith(kept)
    assert len(kept) <= max(0, limit)
    assert len(kept) + left_out == len(text)


def test_cut_keeps_accents_with_their_letter():
    """A cut does not take the accent, the variation selector or the joined half of a character."""
    assert escape.cut("cafe\u0301s", 4) == ("caf", 3)
    assert escape.cut("I ❤\ufe0f it", 3) == ("I ", 5)
    assert escape.cut("abc", 3) == ("abc", 0)
    assert escape.cut("\u0301\u0301", 1) == ("", 2)


def test_strip_line_ends():
    """CRLF is a line end of another system; a lone CR inside a line is content."""
    assert escape.strip_line_ends("a\r\nb\rc\n\r\n") == "a\nb\rc"


class Page(HTMLParser):
    """Collects what a browser would see."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.tags, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, attrs))

    def handle_data(self, data):
        self.text += data


@LAW
@given(hostile)
def test_html_is_text(text):
    """In an element and in a quoted attribute, a browser sees only the text."""
    page = Page()
    page.feed(f'<p title="{escape.html(text)}">{escape.html(text)}')
    page.close()
    shown = escape.terminal(text, newline=True, tab=True)
    assert page.tags == [("p", [("title", shown)])]
    assert page.text == shown


def test_html_attacks_are_shown():
    """Tags, attribute ends and control characters are text."""
    assert escape.html("<script>\"'&\x1b") == "&lt;script&gt;&quot;&#x27;&amp;\\x1b"


@LAW
@given(hostile)
def test_p21_csv_cells_compute_nothing_and_come_back(text):
    """A cell begins with no formula character, and the csv module reads back what was written."""
    cell = escape.csv_cell(text)
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    file = io.StringIO(newline="")
    csv.writer(file).writerow([cell, "end"])
    assert list(csv.reader(io.StringIO(file.getvalue(), newline=""))) == [[cell, "end"]]


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=cmd|'/c calc'!A1", "'=cmd|'/c calc'!A1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\\r=1"),
        ("\n=1", "'\n=1"),
        ("  =1", "'  =1"),
        ("＝1", "'＝1"),
        ("a=1", "a=1"),
        ("claude-opus-4-5", "claude-opus-4-5"),
        ("\x1b[2J", r"\x1b[2J"),
        ("", ""),
    ],
)
def test_p21_csv_cell(value, cell):
    """What a spreadsheet could compute gets a leading apostrophe; names stay as they are."""
    assert escape.csv_cell(value) == cell


@LAW
@given(hostile)
def test_p21_markdown_cells_are_one_plain_cell(text):
    """A Markdown viewer shows the text itself: the row keeps its two cells, and nothing in them is markup."""
    table = f"| a | b |\n|---|---|\n| {escape.markdown_cell(text)} | end |\n"
    shown = MarkdownIt("commonmark").enable("table").render(table)
    body = re.fullmatch(
        r"<table>.*<tbody>\n<tr>\n<td>(.*)</td>\n<td>end</td>\n</tr>\n</tbody>\n</table>\n", shown, re.DOTALL
    )
    assert body
    page = Page()
    page.feed(body[1])
    page.close()
    assert page.tags == []
    assert page.text == escape.terminal(re.sub(r"[ \t\r\n]+", " ", text.strip(" \t\r\n"))).strip()


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("a|b", r"a\|b"),
        ("a\r\nb", "a b"),
        ("`rm`", r"\`rm\`"),
        ("<img src=x>", "&lt;img src=x&gt;"),
        ("[x](https://evil)", r"\[x\](https:\//evil)"),
        ("www.evil.test", r"www\.evil.test"),
        ("@team #12 $x$", r"\@team \#12 \$x\$"),
        ("qwen3.6-27b", "qwen3.6-27b"),
        ("\x1b[2J", r"\\x1b\[2J"),
    ],
)
def test_p21_markdown_cell(text, cell):
    """Pipes, code, HTML, links and mentions are neutralised; model names stay readable."""
    assert escape.markdown_cell(text) == cell
