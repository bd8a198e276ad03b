"""What is left: providers' windows and budgets of one's own, in one shape."""

from hypothesis import given
from hypothesis import strategies as st

from sessionlog.analytics.limits import stamp
from sessionlog.analytics.status.statusline_input import StatuslineInput
from sessionlog.events.times import format_time
from sessionlog.sources.protocol import LogScan
from tests.analytics.status.statuses import HOUR, NOW, limited, own, status, word
from tests.ledger.entries import NOON, book_of, record, scan_of, session
from tests.profiles import examples


def test_a_providers_windows_are_in_percent_and_say_who_says_so():
    """Five hours are `hourly` and seven days `weekly`; others keep their names; 299 minutes are five hours."""
    words = [word(minutes=299), word("secondary", 97.0, 10080), word("gpt-5/primary", 1.0), word("monthly", 3.0, 43200)]
    budgets = status(limited(*words))["usage"]["budgets"]
    assert budgets["hourly"] == {
        "used": 72.5, "limit": 100, "percent": 72.5, "left": 27.5, "unit": "percent", "windowSeconds": 17940,
        "resetsAt": "2026-11-20T14:00:00.000000Z", "source": "codex: the provider's word",
        "said": "2026-11-20T12:00:00.000000Z", "name": "primary", "plan": None,
    }  # fmt: skip
    assert {name: entry["used"] for name, entry in budgets.items()} == {
        "hourly": 72.5, "weekly": 97, "gpt-5/primary": 1, "monthly": 3,
    }  # fmt: skip


def test_the_last_word_counts_and_one_of_the_future_does_not():
    """As in the report on blocks."""
    book = limited(word(used=5.0, time_ns=NOON - 1))
    for number, later in enumerate((word(used=9.0), word(used=99.0, time_ns=NOW + 1))):
        book.add_scan(LogScan(sessions=(session(f"s{number}", record(), source="codex"),), limits=(later,)))
    assert status(book)["usage"]["budgets"]["hourly"]["used"] == 9


def test_a_window_that_is_over_tells_nothing():
    """What was used of it holds no more; the reason says what was known."""
    found = status(limited(word(resets_ns=NOW)))
    hourly = found["usage"]["budgets"]["hourly"]
    assert hourly["used"] is hourly["percent"] is hourly["resetsAt"] is None
    assert "72.5 %" in found["unavailable"]["usage.budgets.hourly.percent"]


def test_without_a_word_the_windows_are_null_with_a_reason():
    """Another source's limits are not this one's."""
    found = status(limited(word(), source="codex"), everything=True)["usage"]["budgets"]
    assert found["hourly"]["used"] == 72.5
    book = limited(word())
    book.add_scan(scan_of(session("mine", record(), source="claude-code", last_ns=NOON + 1)))
    other = status(book)
    assert other["usage"]["budgets"] == {"hourly": None, "weekly": None}
    assert "claude-code" in other["unavailable"]["usage.budgets.hourly"]


def test_budgets_of_ones_own_stand_beside_the_providers():
    """In the same shape; one that is called as a window is gets a name of its own."""
    found = own(limited(word()), '[day]\ntokens = 150\nperiod = "day"\n[hourly]\nrequests = 4\nwindow = "5h"\n')
    budgets = found["usage"]["budgets"]
    assert (budgets["day"]["used"], budgets["day"]["limit"], budgets["day"]["percent"]) == (15, 150, 10.0)
    assert budgets["hourly"]["unit"] == "percent"
    assert budgets["own:hourly"]["unit"] == "requests"
    shape = {"used", "limit", "percent", "unit", "windowSeconds", "resetsAt", "source"}
    assert all(shape <= entry.keys() for entry in budgets.values() if entry is not None)


def test_a_budget_of_ones_own_may_take_the_name_of_a_window_that_is_unknown():
    """Then nothing is unavailable by that name."""
    found = own(book_of(session("s", record())), '[weekly]\ntokens = 150\nwindow = "7d"\n')
    assert found["usage"]["budgets"]["weekly"]["unit"] == "tokens"
    assert "usage.budgets.weekly" not in found["unavailable"]


SESSIONS = '[each]\nusd = 2\nper = "session"\n[mine]\ntokens = 99\nper = "session"\n[codex]\nusd = 2\nper = "session"\nsource = "codex"\n'
OF_USE = ("used", "percent", "left", "level")


def use(found, name):
    """What is said of a budget."""
    return tuple(found["usage"]["budgets"][name][field] for field in OF_USE)


def test_a_sessions_budget_is_never_told_of_another_session():
    """Of one that the ledger does not know only what its agent says of it."""
    book = book_of(session("busy", record(cost_nano=12 * 10**9), status=None))
    told = StatuslineInput({"session_id": "new", "cost": {"total_cost_usd": 0.5}})
    found = own(book, SESSIONS, statusline_input=told)
    assert use(found, "each") == (0.5, 25.0, 1.5, "ok")
    assert use(found, "mine") == use(found, "codex") == (None,) * 4
    assert found["unavailable"]["usage.budgets.mine.used"] == "the ledger has no data of it yet"
    assert use(own(book, SESSIONS, statusline_input=StatuslineInput({"session_id": "new"})), "each") == (None,) * 4
    assert use(own(book, SESSIONS, everything=True), "each") == (None,) * 4
    assert use(own(book, SESSIONS, target="busy"), "each") == (12.0, 600.0, 0, "exceeded")


def test_what_an_agent_says_of_its_session_comes_first():
    """The line would tell two costs of one session else."""
    book = book_of(session("s", record(cost_nano=10**9), source="claude-code"))
    found = own(book, SESSIONS, statusline_input=StatuslineInput({"session_id": "s", "cost": {"total_cost_usd": 1.8}}))
    assert use(found, "each") == (1.8, 90.0, 0.2, "warn")
    assert use(found, "mine")[0] == 15


DAY = '[day]\nusd = 1\nperiod = "day"\n'


def test_of_what_has_no_price_nothing_is_left_that_is_known():
    """Nothing known at all is no 0 %; a part is at least so much, and the reason is that of `budget`."""
    unpriced = record(provider="none", model="none")
    nothing = own(book_of(session("s", unpriced)), DAY)
    assert use(nothing, "day") == (0.0, None, None, None)
    assert "there is no price for none/none (requests: 1), so at least" in nothing["unavailable"]["usage.budgets.day"]
    part = own(book_of(session("s", unpriced, record(cost_nano=9 * 10**8))), DAY)
    assert use(part, "day") == (0.9, 90.0, None, "warn")
    assert part["usage"]["budgets"]["day"]["unknown"] == [part["unavailable"]["usage.budgets.day"]]
    over = own(book_of(session("s", unpriced, record(cost_nano=2 * 10**9))), DAY)
    assert use(over, "day") == (2.0, 200.0, 0, "exceeded")
    assert over["unavailable"]["usage.budgets.day.runsOutAt"] == "it is used up"
    assert over["typical"]["byTask"][0]["fits"] == 0


def test_estimates_are_told_from_what_was_recorded():
    """Of a budget in US dollars, in its time."""
    for fields, estimated in (({}, True), ({"cost_nano": 5}, False)):
        entry = own(book_of(session("s", record(**fields))), DAY)["usage"]["budgets"]["day"]
        assert entry["estimated"] is estimated


def test_when_a_window_starts_anew_is_not_made_up():
    """The log did not say; that it is over by now is sure, though."""
    found = status(limited(word(resets_ns=None)))
    assert found["usage"]["budgets"]["hourly"]["resetsAt"] is None
    assert found["usage"]["budgets"]["hourly"]["used"] == 72.5
    later = status(limited(word(resets_ns=None)), now_ns=NOW + 5 * HOUR)
    assert later["usage"]["budgets"]["hourly"]["used"] is None


@examples(200)
@given(st.integers(-(2**62), 2**63 - 1))
def test_times_are_written_as_everywhere(time_ns):
    """The short way to write one is the same way."""
    assert stamp(time_ns) == format_time(time_ns)
