"""The book: what enters is priced once, odd values do not stop it, and sums never fail."""

import sqlite3

import pytest

from sessionlog.analytics.limits import rate_limits
from sessionlog.errors import Problem
from sessionlog.events.tokens import MAX_COUNT
from sessionlog.ledger import writer
from sessionlog.ledger.book import Book
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.protocol import LogScan
from sessionlog.sources.record import Limit, Problems, ToolUse
from tests.ledger.entries import NOON, PRICES, book_of, record, scan_of, session

LARGEST = 2**63 - 1


def entered(*records):
    """(recorded, estimated) nano-dollars of records in a book."""
    book = book_of(session("s", *records))
    return book.query("SELECT cost_nano, estimate_nano FROM records", {})


def stored(column, **fields):
    """One column of a session in a book."""
    book = book_of(session("s", **fields))
    return book.query(f"SELECT {column} FROM sessions", {})[0][0]


@pytest.mark.parametrize(
    ("fields", "money"),
    [
        ({"cost_nano": 7}, (7, None)),
        ({"cost_nano": None}, (None, 30_000)),
        ({"cost_nano": 0}, (None, 30_000)),
        ({"cost_nano": 0, "model": "gift"}, (0, None)),
        ({"cost_nano": None, "model": "gift"}, (None, 0)),
        ({"cost_nano": 0, "provider": "nobody"}, (0, None)),
        ({"cost_nano": None, "provider": "nobody"}, (None, None)),
        ({"cost_nano": None, "priced": False}, (None, None)),
        ({"cost_nano": 0, "priced": False}, (0, None)),
    ],
)
def test_cost_has_a_source(fields, money):
    """Recorded, else estimated, else unknown; a recorded 0 is free only where there is no list price."""
    assert entered(record(**fields)) == [money]


@pytest.mark.parametrize(
    ("fields", "saved"),
    [
        ({"cache_read": 1000}, 900_000),  # $1 a million less $0.1
        ({"cache_read": 1000, "cost_nano": 7}, 900_000),
        ({"cache_read": 1000, "cost_nano": 7, "priced": False}, 900_000),
        ({"cache_read": 1000, "cache_write": 1000}, 650_000),  # writes cost $1.25
        ({"cache_write": 1000}, -250_000),
        ({"cache_read": 1000, "model": "gift"}, 0),
        ({"cache_read": 1000, "provider": "nobody"}, None),
        ({}, None),
    ],
)
def test_what_the_cache_saved_comes_from_the_list(fields, saved):
    """Whoever says what the request cost; nothing cached is unknown, not 0, and writes that never paid are a loss."""
    book = book_of(session("s", record(**fields)))
    assert book.query("SELECT saved_nano FROM records", {}) == [(saved,)]
    assert book.query("SELECT saved_nano FROM quarter_hours", {}) == [(saved,)]


def test_repricing_gives_what_the_first_pricing_gives():
    """Of tiers, regions, searches and recorded extras, too, whatever the prices were before."""
    names = ({"provider": "anthropic", "model": "claude-opus-4-8"}, {"provider": "openai", "model": "my-name"})
    words = ({}, {"region": "us", "speed": "fast"}, {"service_tier": "priority", "searches": 2})
    extras = ({}, {"extra_nano": 5}, {"cost_nano": 9_000, "searches": 1}, {"cost_nano": 0, "searches": 1})
    one = session("s", *(record(**name, **word, **extra) for name in names for word in words for extra in extras
                         if not ("searches" in word and "searches" in extra)))  # fmt: skip
    after = PriceBook.load({"my-name": "openai/gpt-5.5"})
    costs = "SELECT cost_nano, estimate_nano, saved_nano, extra_nano FROM responses ORDER BY n"
    whole = book_of(one, prices=after).query(costs, {})
    for before in (PRICES, PriceBook.load(), PriceBook.load({"*": {"input": 7, "output": 9}})):
        book = book_of(one, prices=before)
        book.reprice(before)
        book.reprice(after)
        assert book.query(costs, {}) == whole
    assert len({row[1] for row in whole}) > 6


def test_the_served_name_is_tried_where_the_asked_one_has_no_price():
    """An alias has no price of its own, the model that answered has."""
    odd = {"provider": "shop", "model": "alias"}
    assert entered(record(response_model="served-name", **odd)) == [(None, 30_000)]
    assert entered(record(response_model="other", **odd)) == [(None, None)]


def test_the_served_name_goes_before_the_asked_one():
    """What answered is what is billed; what was asked for is the next best guess."""
    assert entered(record(response_model="gift")) == [(None, 0)]


@pytest.mark.parametrize("batch", [1, 2, 3, 100])
def test_prices_that_change_reach_every_response(monkeypatch, batch):
    """However many are in memory at once: of several logs, and those that are no copy of their own."""
    monkeypatch.setattr(writer, "_BATCH", batch)
    book = book_of(session("a", *(record(input=n) for n in range(5))), session("b", record(input=7), record(input=9)))
    book.reconcile()
    book.set_meta("prices", "others")
    book.reprice(PriceBook.load({"acme/m": {"input": 1000, "output": 0}}))
    costs = [nano for (nano,) in book.query("SELECT estimate_nano FROM records ORDER BY 1", {})]
    assert costs == [n * 10**6 for n in (0, 1, 2, 3, 4, 7, 9)]
    assert book.query("SELECT SUM(estimate_nano) FROM quarter_hours", {}) == [(sum(costs),)]


def test_an_estimate_beyond_all_sense_is_unknown():
    """The largest counts that a log can hold enter the book."""
    assert entered(record(input=MAX_COUNT, output=MAX_COUNT)) == [(None, None)]


def test_failed_calls_have_no_latency_in_the_histogram():
    """How long it took to fail says nothing about how long answers take."""
    book = book_of(session("s", record(latency_ms=5.0), record(latency_ms=5.0, failed=True), record()))
    assert book.query("SELECT latency_ms, latency_bucket IS NULL FROM records", {}) == [(5.0, 0), (5.0, 1), (None, 1)]


def test_names_that_are_no_text_stay_distinct():
    """A file name may be any bytes."""
    assert stored("session", source="native") == "s"
    book = book_of(*[session(f"bad-{name}", path=f"/logs/bad-{name}.jsonl") for name in ("\udcff", "\udcfe", "ü")])
    names = [name for (name,) in book.query("SELECT session FROM sessions ORDER BY id", {})]
    assert names == ["bad-\\udcff", "bad-\\udcfe", "bad-ü"]


HALF = "a\ud83d"
"""Half of a character, as JSON may hold it and SQLite may not."""


@pytest.mark.parametrize("name", ["provider", "model", "response_model", "project", "branch", "version", "agent"])
def test_half_a_character_in_a_label_stays_visible(name):
    """Whatever a log puts into a name, and however often: copies of it are one response."""
    entries = [record(key="k", **{name: HALF}), record(key="k", output=9, **{name: HALF})]
    assert book_of(session("s", *entries)).query(f"SELECT DISTINCT {name} FROM labels", {}) == [("a\\ud83d",)]


def test_half_a_character_can_be_asked_for():
    """The words of a question may be no text, either."""
    book = book_of(session("s", project=HALF))
    assert book.query("SELECT COUNT(*) FROM sessions WHERE project = :project", {"project": HALF}) == [(1,)]


def test_half_a_character_in_a_key_names_a_response():
    """A copy is recognised all the same, alone and in a family."""
    for family in ("", "f"):
        book = book_of(session("s", *[record(key=key, family=family) for key in (HALF, "b", HALF, HALF)]))
        assert book.query("SELECT COUNT(*), COUNT(DISTINCT key) FROM records", {}) == [(2, 2)]


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("parent", "parent"), ("project", "project"), ("harness", "harness"), ("route", "route"), ("prompt", "prompt"),
        ("error", "error"), ("status", "end_status"),
    ],
)  # fmt: skip
def test_half_a_character_in_a_session_stays_visible(name, column):
    """A prompt is cut anywhere."""
    assert stored(column, **{name: HALF}) == "a\\ud83d"
    assert stored("end_status", status=None) is None


@pytest.mark.parametrize("name", ["tool", "server", "agent", "project"])
def test_half_a_character_in_a_tool_call_stays_visible(name):
    """A model may call tools by any name."""
    use = ToolUse(**({"key": HALF, "time_ns": NOON, "tool": "bash"} | {name: HALF}))
    book = book_of(session("s", tools=(use, use)))
    assert book.query(f"SELECT {name} FROM tools", {}) == [("a\\ud83d",)]


@pytest.mark.parametrize(("number", "kept"), [(10**30, LARGEST), (-(10**30), -LARGEST), (2**63, LARGEST)])
def test_numbers_beyond_64_bits_are_bent(number, kept):
    """They cost nothing else: not the other rows that are written with them."""
    use = ToolUse(key="c", time_ns=number, tool="bash", duration_ms=number, output_bytes=number)
    odd = record(time_ns=number, key="k", active_ms=number)
    entries = [record(), odd, record(time_ns=number, key="k", output=9, active_ms=number), record()]
    book = book_of(session("s", *entries, tools=(use, use), start_ns=number, last_ns=number, duration_ms=number))
    assert book.query("SELECT time_ns, active_ms FROM records ORDER BY ABS(n)", {}) == [
        (NOON, 0), (kept, kept), (NOON, 0),
    ]  # fmt: skip
    assert book.query("SELECT time_ns, output_bytes FROM tools", {}) == [(kept, kept)]
    assert book.query("SELECT start_ns, last_ns, duration_ms FROM sessions", {}) == [(kept, kept, kept)]


def test_a_book_that_could_not_be_made_is_thrown_away_quietly(monkeypatch):
    """What went wrong is raised alone."""
    monkeypatch.setattr("sessionlog.ledger.tables.tables", lambda: ("no SQL",))
    with pytest.raises(sqlite3.OperationalError):
        Book(None)


def nested(depth):
    value = 0
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("odd", [10**30, nested(400), nested(900)])
def test_odd_metadata_cost_only_themselves(odd):
    """A number beyond 64 bits or a deep nesting leaves the other keys to group by."""
    text = stored("metadata", metadata={"odd": odd, "team": "a", "n": 1, "none": None})
    assert '"team"' in text
    assert '"n"' in text


def test_damage_is_counted_and_the_first_hundred_kept():
    """The count is exact whatever is kept."""
    book = book_of()
    one = Problem(path="s.jsonl", line=1, offset=0, kind="not_json", detail="?")
    book.note(Problems(count=500, first=(one,) * 99))
    book.note(Problems(count=3, first=(one,) * 3))
    assert (book.problem_count, len(book.problems)) == (503, 100)


def test_a_scan_brings_its_damage():
    """What was wrong with a log enters with its session."""
    one = Problem(path="s.jsonl", line=1, offset=0, kind="not_json", detail="?")
    book = book_of()
    book.add_scan(LogScan(sessions=(session("s"),), problems=Problems(count=2, first=(one,))))
    assert (book.problem_count, book.problems) == (2, [one])


@pytest.mark.parametrize("settled", [False, True])
def test_what_a_scan_gives_again_replaces_the_last_of_what_was_given(settled):
    """Also copies of responses that had a name: what they were copies of counts again."""
    book = book_of(session("s", record(output=1), record(output=2, key="k"), record(output=3)))
    book.add_scan(scan_of(session("t", record(output=1, key="k"), path="t.jsonl")))
    sql = "SELECT s.session, r.output FROM records r JOIN sessions s ON s.id = r.session_id ORDER BY 1, 2"
    if settled:
        assert book.query(sql, {}) == [("s", 1), ("s", 2), ("s", 3)]
    book.add_scan(LogScan(sessions=(session("s", record(output=7)),), replaced_count=2))
    assert book.query(sql, {}) == [("s", 1), ("s", 7), ("t", 1)]
    book.add_scan(LogScan(sessions=(session("s", record(output=8)),)))
    assert book.query(sql, {}) == [("s", 1), ("s", 7), ("s", 8), ("t", 1)]


@pytest.mark.parametrize("settled", [False, True])
def test_a_scan_that_read_all_of_a_log_again_replaces_what_was_given(settled):
    """Records, calls, facts and damage of that log, and of no other."""
    one = Problem(path="s.jsonl", line=1, offset=0, kind="not_json", detail="?")
    call = ToolUse(key="c", time_ns=NOON, tool="bash")
    book = book_of(session("other", record()))
    before = session("s", record(), record(), tools=(call,), prompt="before")
    book.add_scan(LogScan(sessions=(before,), problems=Problems(count=2, first=(one,))))
    if settled:
        book.reconcile()
    book.add_scan(LogScan(sessions=(session("s", record(output=7), prompt="after"),), full_rescan=True))
    assert book.query("SELECT output FROM records ORDER BY 1", {}) == [(5,), (7,)]
    assert book.query("SELECT prompt FROM sessions WHERE session = 's'", {}) == [("after",)]
    assert (book.query("SELECT * FROM tools", {}), book.problem_count, book.problems) == ([], 0, [])


def test_sums_beyond_64_bits_stop_at_the_largest_number():
    """SQLite would fail; a hostile log must not end a report."""
    book = book_of(session("s", *[record(input=MAX_COUNT, provider="nobody")] * 1100))
    sql = "SELECT SUM(input), SUM(output), SUM(cost_nano), COUNT(*) FROM records"
    assert book.query(sql, {}) == [(LARGEST, 5500, None, 1100)]


def test_other_errors_of_a_query_are_raised():
    """Only an overflow is answered by saturating."""
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        book_of().query("SELECT missing FROM records", {})


@pytest.mark.parametrize("turned", [False, True])
def test_the_latest_word_on_a_limit_is_kept(turned):
    """In whatever order the logs are read; of words of one moment that of the later period, then of more use."""
    words = [
        (NOON, 10, None),
        (NOON + 2, 5, NOON + 9),
        (NOON + 2, 7, NOON + 9),
        (NOON + 2, 90, NOON + 3),
        (NOON + 1, 99, None),
    ]
    book = book_of()
    for time_ns, used, resets_ns in reversed(words) if turned else words:
        limit = Limit(time_ns=time_ns, name="primary", used_percent=used, resets_ns=resets_ns)
        book.add_scan(LogScan(sessions=(session("s", source="codex"),), limits=(limit,)))
    assert [(one.source, one.name, one.logged_percent) for one in rate_limits(book.query, NOON + 3)] == [
        ("codex", "primary", 7)
    ]


def test_a_session_is_one_row_however_many_logs_tell_of_it():
    """The row is what all of them tell, also between two reports."""
    book = book_of(session("s", last_ns=NOON + 5))
    sql = "SELECT session, last_ns FROM sessions"
    assert book.query(sql, {}) == [("s", NOON + 5)]
    book.add_scan(scan_of(session("s", last_ns=NOON + 9, path="other.jsonl")))
    assert book.query(sql, {}) == [("s", NOON + 9)]
