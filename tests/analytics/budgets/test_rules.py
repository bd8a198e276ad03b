"""Budget rules: every form of `[budgets.NAME]`, and a refusal by name for whatever could be read in two ways."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.analytics.budgets.rules import EXAMPLE, parse_budget, parse_budgets, parse_each_budget
from sessionlog.errors import InvalidSettings
from sessionlog.settings import load_settings
from tests.profiles import examples

HOUR = 3600 * 10**9
DAILY = {"usd": 20, "period": "day"}


def rule(**fields):
    return parse_budget("b", fields)


@pytest.mark.parametrize(
    ("table", "unit", "limit"),
    [
        ({"usd": 20}, "usd", 20 * 10**9),
        ({"usd": 0.1}, "usd", 10**8),
        ({"tokens": 2_000_000}, "tokens", 2_000_000),
        ({"requests": 500}, "requests", 500),
    ],
)
def test_an_amount(table, unit, limit):
    """Money is nano-dollars inside, the rest is counted."""
    found = rule(**table, period="day")
    assert (found.unit, found.limit, found.cap) == (unit, limit, limit)
    assert found.in_unit(found.limit) == table[unit]


@pytest.mark.parametrize(
    ("text", "window_ns", "months"),
    [
        ("5h", 5 * HOUR, None),
        ("30min", HOUR // 2, None),
        ("90m", 90 * HOUR // 60, None),
        ("7d", 168 * HOUR, None),
        ("2w", 336 * HOUR, None),
        ("3mo", None, 3),
    ],
)
def test_a_rolling_window(text, window_ns, months):
    """Minutes, hours, days, weeks and calendar months."""
    found = rule(usd=1, window=text)
    assert (found.window_ns, found.months, found.period, found.is_per_session) == (window_ns, months, None, False)


@pytest.mark.parametrize("period", ["hour", "day", "week", "month"])
def test_a_period(period):
    """A period is of the calendar."""
    found = rule(usd=1, period=period)
    assert (found.period, found.span, found.window_ns, found.months) == (period, period, None, None)


def test_a_session():
    """Every session has its own."""
    assert rule(usd=1, per="session").is_per_session


def test_the_scope():
    """A text is a list of one; the case of patterns does not matter."""
    found = rule(**DAILY, model=["Claude-*", "gpt-*"], source="codex", meta={"team": "X"})
    assert found.filters == {"source": ("codex",), "model": ("claude-*", "gpt-*")}
    assert found.meta == {"team": ("x",)}


@pytest.mark.parametrize(
    ("levels", "warn", "stop"),
    [({}, 80, 100), ({"warn": 50}, 50, 100), ({"stop": 50}, 40, 50), ({"stop": 150}, 80, 150)],
)
def test_the_levels(levels, warn, stop):
    """80 and 100 percent; a lower stop alone takes the warning with it."""
    found = rule(**DAILY, **levels)
    assert (found.warn, found.stop, found.cap) == (warn, stop, 20 * 10**9 * stop // 100)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"period": "day"}, "needs exactly one of usd, tokens, requests as an amount; it has none"),
        ({"usd": 1, "tokens": 2, "period": "day"}, "it has usd and tokens"),
        ({"usd": 1}, "needs exactly one of per, window, period as a time; it has none"),
        ({"usd": 1, "window": "5h", "period": "day"}, "it has window and period"),
        ({"usd": 0, "period": "day"}, "usd must be a number above 0"),
        ({"usd": 1e-12, "period": "day"}, "usd must be a number above 0"),
        ({"usd": float("nan"), "period": "day"}, "usd must be a number above 0"),
        ({"usd": True, "period": "day"}, "usd must be a number above 0"),
        ({"tokens": 1.5, "period": "day"}, "tokens must be a whole number above 0; it is 1.5"),
        ({"requests": -1, "period": "day"}, "requests must be a whole number above 0; it is -1"),
        ({"usd": 1, "window": "5"}, "window must be a number and min, h, d, w or mo"),
        ({"usd": 1, "window": "0h"}, "window must be"),
        ({"usd": 1, "window": "-5h"}, "window must be"),
        ({"usd": 1, "window": "5y"}, "window must be"),
        ({"usd": 1, "window": 5}, "it is 5"),
        ({"usd": 1, "window": "99999999999w"}, "up to 100 years"),
        ({"usd": 1, "period": "year"}, "period must be one of hour, day, week, month; it is 'year'"),
        ({"usd": 1, "per": "day"}, "per must be 'session'"),
        ({**DAILY, "modell": "x"}, "unknown key 'modell' (did you mean 'model'?); known are usd, tokens"),
        ({**DAILY, "dollars": 3}, "unknown key 'dollars' (did you mean 'usd'?); known are usd, tokens"),
        ({**DAILY, "xyzzy": 3}, "unknown key 'xyzzy'; known are usd, tokens"),
        ({**DAILY, "model": []}, "model must be a text such as 'claude-*', or a list of them; it is []"),
        ({**DAILY, "model": [1]}, "model must be a text"),
        ({**DAILY, "meta": "x"}, "meta must be a table"),
        ({**DAILY, "meta": {"team": 1}}, "meta.team must be a text"),
        ({**DAILY, "warn": 100}, "warn must be below stop; it is 100, and stop is 100"),
        ({**DAILY, "stop": 0}, "stop must be a number of percent above 0"),
        ("20", "must be a table"),
    ],
)
def test_what_is_refused(table, words):
    """The message names the budget, the key, and what is allowed."""
    with pytest.raises(InvalidSettings) as caught:
        parse_budgets({"daily": table})
    assert str(caught.value).startswith("[budgets.daily] ")
    assert words in str(caught.value)


def test_one_mistake_leaves_the_others():
    """The file and the budget are named."""
    rules, flaws = parse_each_budget({"a": DAILY, "b": {"usd": 1}, "c": DAILY}, path="/c.toml")
    assert [one.name for one in rules] == ["a", "c"]
    assert list(flaws) == ["b"]
    assert flaws["b"].startswith("/c.toml: [budgets.b] needs exactly one of per, window, period")
    with pytest.raises(InvalidSettings, match=r"/c\.toml: \[budgets\.b\] needs"):
        parse_budgets({"a": DAILY, "b": {"usd": 1}}, path="/c.toml")


def test_a_name_is_needed():
    """TOML allows an empty one."""
    with pytest.raises(InvalidSettings, match="needs a name"):
        parse_budgets({" ": DAILY})


def test_a_rule_cannot_be_changed():
    """It may be shared."""
    with pytest.raises(AttributeError, match="limit"):
        rule(**DAILY).limit = 3


def test_budgets_that_limit_the_same_have_one_key():
    """Amounts, levels, names and spellings apart; a session has its own."""
    one = parse_budget("a", {"usd": 1, "window": "1d", "model": ["x", "Y"]})
    other = parse_budget("b", {"usd": 2, "window": "24h", "model": ["y", "x"], "warn": 1})
    assert one.key("s") == other.key() == one.key()
    assert one.key() != parse_budget("a", {"usd": 1, "window": "1d", "model": "x"}).key()
    assert one.key() != parse_budget("a", {"tokens": 1, "window": "1d", "model": ["x", "y"]}).key()
    own = rule(usd=1, per="session")
    assert own.key("s") != own.key("t")


@given(stop=st.floats(0.1, 1000), warn=st.floats(0.1, 1000) | st.none())
@examples(100)
def test_a_warning_comes_before_the_stop(stop, warn):
    """Whatever is configured: else it is refused."""
    levels = {"stop": stop} | ({} if warn is None else {"warn": warn})
    try:
        found = rule(**DAILY, **levels)
    except InvalidSettings:
        assert warn is not None
        assert warn >= stop
    else:
        assert found.warn < found.stop == stop


def test_the_example_can_be_pasted(tmp_path):
    """It is what is shown to those who have no budget."""
    path = tmp_path / "config.toml"
    path.write_text(EXAMPLE, "utf-8")
    [found] = parse_budgets(load_settings({"HOME": str(tmp_path), "SESSIONLOG_CONFIG": str(path)}).budgets)
    assert (found.name, found.limit, found.period) == ("daily", 20 * 10**9, "day")


def test_budgets_must_be_a_table(tmp_path):
    """As every other table of the settings."""
    path = tmp_path / "config.toml"
    path.write_text("budgets = 3", "utf-8")
    with pytest.raises(InvalidSettings, match="budgets must be a table"):
        load_settings({"HOME": str(tmp_path), "SESSIONLOG_CONFIG": str(path)})


def test_rules_and_states_import_nothing_heavy():
    """The status line reads them in the time of a prompt."""
    code = (
        "import sys; import sessionlog.analytics.budgets.rules, sessionlog.analytics.budgets.states; "
        "print([name for name in ('typing', 'dataclasses', 'datetime', 'sqlite3', 're', 'json') if name in sys.modules])"
    )
    bare = subprocess.run([sys.executable, "-SIc", f"import sys; sys.path[:0] = {sys.path!r}; {code}"],
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert bare.stdout.strip() == "[]"
