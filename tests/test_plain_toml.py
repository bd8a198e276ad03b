"""Settings that are read without the whole of TOML: what is read means the same, and the rest is left to it."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.plain_toml import parse_plain_toml
from tests.profiles import examples

BUDGETS = '# mine\n[budgets.daily]\nusd = 40\nperiod = "day"\n\n[budgets.each]\ntokens = 10_000\nper = "session"\n'


@pytest.mark.parametrize(
    "text",
    [
        BUDGETS, "", "a = 1\r\nb = 1.50\n", "a = true\n[x]\nb = false\n", '[x]\nb = 0\n[x.y-z]\nname = "gpt-*"\n',
        "[budgets.x]\nusd = 0.5\n", "# é\n\n \t\n",
    ],
)  # fmt: skip
def test_plain_settings_are_read(text):
    """Tables of numbers, truths and texts."""
    assert parse_plain_toml(text) == tomllib.loads(text)


LINES = st.lists(
    st.sampled_from(
        ["[a]", "[a.b]", "[a]]", "[ a ]", "[]", "[a.]", "[[a]]", "a = 1", "b=2", "a = 01", "a = 1_0", "a = 1__0", "a = _1",
         "a = -1", "a = +1", "a = 1.", "a = .5", "a = 0.25", "a = 1.2.3", "a = 1e5", "a = 0x1", 'b = "x"', "b = 'x'",
         'b = "x" # y', 'b = "x\\n"', 'b = "', 'b = ""', "b = true", "b = True", "a.b = 1", '"a" = 1', "b = [1]",
         "b = { c = 1 }", "# note", "#\x00", "a", "= 1", "a = ", 'b = "é"', "c = 2026-11-21", "c = 1_000.5",
         "c = 1.5_0", "\ufeff", "d = 00", "d = 0", "e = inf"]
    ) | st.text(max_size=5),
    max_size=5,
)  # fmt: skip


@examples(1500)
@given(LINES)
def test_what_is_read_is_what_toml_means(lines):
    """Everything else is left to it, its mistakes among them."""
    text = "\n".join(lines)
    found = parse_plain_toml(text)
    if found is not None:
        assert repr(found) == repr(tomllib.loads(text))
