"""Wire: a request that was recorded on the wire, and the agent's own log of it, count once."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.ledger.ask import Where, ask
from sessionlog.ledger.columns import Session
from sessionlog.ledger.compare import compare_derived
from sessionlog.ledger.opening import open_ledger
from sessionlog.ledger.schema import GONE
from sessionlog.pricing.book import PriceBook
from sessionlog.pricing.own_prices import parse_own_prices
from sessionlog.pricing.price_list import load_price_list
from sessionlog.sources.record import ToolUse
from tests.ledger.entries import NOON, PRICES, SECOND, book_of, record, scan_of, session
from tests.ledger.little_home import LittleHome
from tests.ledger.little_logs import PARENT, PATHS
from tests.profiles import examples

MINUTE = 60 * SECOND
LOG, WIRE = PATHS["claude"][0], PATHS["native"][2]
COUNTED = """SELECT s.source, s.session, (r.time_ns - :noon) / 1e9, r.requests, r.input, r.output, r.latency_ms, l.model,
    l.project, l.quality, r.cost_nano, r.estimate_nano
    FROM records r JOIN sessions s ON s.id = r.session_id JOIN labels l ON l.id = r.label_id"""
SUMMED = """SELECT SUM(requests), SUM(input), SUM(output), SUM(cost_nano), SUM(estimate_nano), SUM(active_ms) FROM {}"""
LISTED = "SELECT source, session FROM sessions ORDER BY 1, 2"


def at(second, **fields):
    """A record that was answered so many seconds after noon."""
    return record(time_ns=NOON + int(second * SECOND), **fields)


def on_wire(name, *records, of="codex", **fields):
    """A session that was recorded on the wire from noon on for a minute."""
    fields = {"start_ns": NOON, "last_ns": NOON + MINUTE, "on_wire_of": of} | fields
    return session(name, *records, **fields)


def in_log(name, *records, source="codex", **fields):
    """A session of an agent's own log, of the same time."""
    fields = {"start_ns": NOON, "last_ns": NOON + MINUTE, "source": source, "project": "/work"} | fields
    return session(name, *records, **fields)


def counted(*sessions):
    """What a book of these sessions counts, the same in every order, in a second look, and in sums."""
    answers = []
    for order in permutations(sessions):
        book = book_of(*order)
        answers.append(answer_of(book))
        one_by_one = book_of()
        for one in order:
            one_by_one.add_scan(scan_of(one))
            one_by_one.reconcile()
        answers.append(answer_of(one_by_one))
    assert all(answer == answers[0] for answer in answers)
    return answers[0]


def answer_of(book):
    """What counts, by session; derived values are as if they were derived anew."""
    rows = sorted(book.query(COUNTED, {"noon": NOON}), key=lambda row: (row[:6], repr(row)))
    assert book.query(SUMMED.format("records"), {}) == book.query(SUMMED.format("quarter_hours"), {})
    assert compare_derived(book.copy()) == []
    return rows


def totals(*sessions):
    """(session, requests, input, output, latency) of what counts."""
    return [(row[1], row[3], row[4], row[5], row[6]) for row in counted(*sessions)]


def test_a_request_in_both_counts_once():
    """The log gives session, names, time and tokens, the wire the latency."""
    wire = on_wire("w", at(9, response_id="a", latency_ms=4000, model="served"))
    log = in_log("s", at(7, response_id="a", latency_ms=1, model="asked"))
    [row] = counted(wire, log)
    assert row[:9] == ("codex", "s", 7.0, 1, 10, 5, 4000, "asked", "/work")


def test_a_session_without_anything_of_its_own_is_not_listed():
    """It is found by who asks for it, and marked."""
    book = book_of(on_wire("w", at(9)), in_log("s", at(9)))
    assert book.query(LISTED, {}) == [("codex", "s")]
    [row] = book.query(f"SELECT {', '.join(Session._fields)} FROM all_sessions WHERE session = 'w'", {})
    named = Session._make(row)._asdict()
    assert (named["absorbed"], named["on_wire_of"]) == (1, "codex")


@pytest.mark.parametrize(("source", "of", "sessions"), [("codex", "", 1), ("codex", "codex", 1), ("pi", "codex", 2)])
def test_only_the_named_source_is_asked(source, of, sessions):
    """Where none is named, any."""
    rows = counted(on_wire("w", at(9), of=of), in_log("s", at(9), source=source))
    assert len({row[1] for row in rows}) == len(rows) == sessions


def test_an_agent_that_another_one_started_counts_once():
    """Its requests pass the same way, and are known by their ids; equal tokens alone would not be enough."""
    wire = on_wire("w", at(9, response_id="a"), at(12, response_id="p"), of="codex")
    logs = in_log("s", at(9, response_id="a")), in_log("p", at(12, response_id="p"), source="pi")
    assert [row[:2] for row in totals(wire, *logs)] == [("s", 1), ("p", 1)]


def test_the_log_of_the_named_source_goes_first():
    """Where two sources know an id, it is the agent's that was run."""
    wire = on_wire("w", at(9, response_id="a", latency_ms=4000), of="codex")
    rows = totals(wire, in_log("s", at(8, response_id="a")), in_log("o", at(9, response_id="a"), source="pi"))
    assert [(row[0], row[4]) for row in rows] == [("s", 4000), ("o", None)]


def test_a_title_that_is_only_on_the_wire_counts_in_the_session():
    """It is one of its requests that its log leaves out: with its project, and its own model."""
    title = at(2, response_id="t", input=3, output=1, model="little", latency_ms=500)
    wire = on_wire("w", title, at(9, response_id="a", latency_ms=4000))
    rows = counted(wire, in_log("s", at(8, response_id="a")))
    assert [(*row[1:6], row[7], row[8]) for row in rows] == [
        ("s", 2.0, 1, 3, 1, "little", "/work"),
        ("s", 8.0, 1, 10, 5, "m", "/work"),
    ]


def test_a_session_on_the_wire_that_no_log_knows_is_one_of_its_own():
    """Its requests count all the same."""
    assert totals(on_wire("w", at(1), at(2)), in_log("s", at(9, input=11))) == [
        ("s", 1, 11, 5, None), ("w", 1, 10, 5, None), ("w", 1, 10, 5, None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("logged", "wired", "tokens"),
    [
        ({"output": 98}, {"output": 120}, (10, 120)),
        ({"output": 120}, {"output": 98}, (10, 120)),
        ({"output": 500, "quality": "estimated"}, {"output": 98}, (10, 98)),
        ({"output": 1, "quality": "partial"}, {"output": 98}, (10, 98)),
        ({"output": 98}, {"output": 300, "quality": "partial"}, (10, 98)),
        ({"output": 98, "input": 9}, {"output": 98, "input": 8}, (9, 98)),
    ],
)
def test_where_the_tokens_differ_the_better_record_has_them(logged, wired, tokens):
    """The better quality, then the greatest output, then the greatest total; the session is the log's."""
    [row] = counted(on_wire("w", at(9, response_id="a", **wired)), in_log("s", at(9, response_id="a", **logged)))
    assert (row[1], row[4:6], row[9]) == ("s", tokens, "exact")
    assert row[11] == 1000 * tokens[0] + 4000 * tokens[1]  # the cost of these tokens, in nano-dollars


PROVIDERS = """SELECT l.provider, l.model, r.input, r.estimate_nano FROM records r JOIN labels l ON l.id = r.label_id
    ORDER BY r.time_ns"""


def test_the_provider_behind_a_gateway_is_the_logs():
    """A host has no prices: a title and a failure get the provider of the nearest pair, and its prices."""
    title = at(2, input=3, output=1, model="little", provider="127.0.0.1")
    failure = at(12, input=0, output=0, failed=True, provider="127.0.0.1")
    wire = on_wire("w", title, at(9, response_id="a", output=7, provider="127.0.0.1"), failure)
    log = in_log("s", at(9, response_id="a"))
    assert len(counted(wire, log)) == 3
    assert book_of(wire, log).query(PROVIDERS, {}) == [
        ("acme", "little", 3, 7000), ("acme", "m", 10, 38_000), ("acme", "m", 0, 0),
    ]  # fmt: skip


def test_of_two_providers_it_is_that_of_the_same_model():
    """Although a pair with another model is nearer."""
    pairs = [at(5, response_id="a", provider="acme"), at(19, response_id="b", model="served-name", provider="shop")]
    one = at(20, input=3, output=1, provider="gateway.corp")
    wire, log = on_wire("w", *pairs, one), in_log("s", *pairs)
    assert len(counted(wire, log)) == 3
    assert book_of(wire, log).query(PROVIDERS, {})[-1] == ("acme", "m", 3, 7000)


def test_a_provider_that_alone_has_the_price_is_kept():
    """An agent may ask several providers, and one that its log does not name."""
    other = at(2, model="served-name", provider="shop", input=1, output=0)
    wire, log = on_wire("w", other, at(9, provider="other")), in_log("s", at(9, provider="unlisted"))
    assert len(counted(wire, log)) == 2
    assert book_of(wire, log).query(PROVIDERS, {})[0] == ("shop", "served-name", 1, 2000)


def test_new_prices_reach_the_rows_that_are_made():
    """Both of a pair and of a request that is only on the wire, at the provider's of the log."""
    wire = on_wire("w", at(2, input=3, output=1, provider="host"), at(9, response_id="a", output=7, provider="host"))
    book = book_of(wire, in_log("s", at(9, response_id="a")))
    book.reprice(PRICES)
    other = PriceBook(load_price_list(), parse_own_prices({"acme/*": {"input": 2, "output": 8}}))
    before = [row[3] for row in book.query(PROVIDERS, {})]
    book._prices = other
    assert compare_derived(book.copy()) == []
    book.reprice(other)
    assert [row[3] for row in book.query(PROVIDERS, {})] == [2 * cost for cost in before] == [14_000, 76_000]
    assert compare_derived(book.copy()) == []


def test_two_requests_with_two_ids_are_never_one():
    """However alike they are."""
    assert len(totals(on_wire("w", at(9, response_id="a")), in_log("s", at(9, response_id="b")))) == 2


def test_a_log_without_ids_is_paired_by_tokens():
    """Within ten seconds of the time that the request took, not later."""
    wire = on_wire("w", at(10, response_id="a", latency_ms=4000), at(40, response_id="b", input=20, latency_ms=4000))
    log = in_log("s", at(3), at(51, input=20))
    assert totals(wire, log) == [("s", 1, 10, 5, 4000), ("s", 1, 20, 5, 4000), ("s", 1, 20, 5, None)]


def test_clocks_may_differ():
    """By three seconds without ids, by minutes with them."""
    assert len(totals(on_wire("w", at(10)), in_log("s", at(7)))) == 1
    assert len(totals(on_wire("w", at(10, response_id="a")), in_log("s", at(310, response_id="a")))) == 1


@pytest.mark.parametrize("named", [{}, {"response_id": "a"}])
@pytest.mark.parametrize("second", [-30, 90])
def test_a_request_outside_of_its_session_on_the_wire_has_no_pair(second, named):
    """A clock has jumped: its time says nothing, and what it may affect is looked for by its session's time."""
    wire, log = on_wire("w", at(second, latency_ms=4000, **named)), in_log("s", at(second, **named))
    assert totals(wire, log) == [("s", 1, 10, 5, None), ("w", 1, 10, 5, 4000)]


def test_equal_tokens_are_paired_in_order():
    """The first with the first, as each has its own latency."""
    wire = on_wire("w", at(5, latency_ms=1000), at(8, latency_ms=2000))
    assert [row[4] for row in totals(wire, in_log("s", at(7), at(9)))] == [1000, 2000]


def test_of_more_alike_on_the_wire_the_nearest_are_paired():
    """The one that the log leaves out is the one that is furthest from its rows."""
    wire = on_wire("w", at(1, latency_ms=100), at(5, latency_ms=200), at(9, latency_ms=300))
    rows = counted(wire, in_log("s", at(5), at(9)))
    assert [(row[2], row[6]) for row in rows] == [(1.0, 100), (5.0, 200), (9.0, 300)]
    book = book_of(wire, in_log("s", at(5), at(9)))
    assert book.query("SELECT n FROM wire_matches WHERE log_n IS NULL", {}) == [(0,)]


def test_requests_of_one_model_are_paired_first():
    """A title with as many tokens takes no row of another model."""
    wire = on_wire("w", at(9, model="little", latency_ms=1), at(9.5, model="m", latency_ms=2))
    rows = counted(wire, in_log("s", at(9)))
    assert [(row[7], row[6]) for row in rows] == [("little", 1), ("m", 2)]


def test_a_retry_counts_as_the_request_that_it_is():
    """The first attempt has failed, and the log does not know it."""
    failed = at(2, failed=True, input=0, output=0, latency_ms=30)
    rows = counted(on_wire("w", failed, at(9, latency_ms=4000)), in_log("s", at(9)))
    assert [(row[2], row[3], row[4]) for row in rows] == [(2.0, 1, 0), (9.0, 1, 10)]
    both = counted(on_wire("w", failed, at(9)), in_log("s", at(3, failed=True, input=0, output=0), at(9)))
    assert len(both) == 2


def test_two_sessions_on_the_wire_are_one_session_of_the_agent():
    """It was resumed: each gives its own part."""
    first = on_wire("w1", at(5, latency_ms=1), at(6, input=99), last_ns=NOON + 10 * SECOND)
    second = on_wire("w2", at(3000, latency_ms=2), start_ns=NOON + 2990 * SECOND, last_ns=NOON + 3010 * SECOND)
    log = in_log("s", at(5), at(3000), last_ns=NOON + 3000 * SECOND)
    assert totals(first, second, log) == [("s", 1, 10, 5, 1), ("s", 1, 99, 5, None), ("s", 1, 10, 5, 2)]


def test_one_session_on_the_wire_is_two_sessions_of_the_agent():
    """What only the wire has is in the session that is nearest in time."""
    wire = on_wire("w", at(1, input=70), at(5), at(41, input=20), at(44, input=80))
    rows = totals(wire, in_log("s1", at(5)), in_log("s2", at(41, input=20)))
    assert [row[:3] for row in rows] == [("s1", 1, 70), ("s1", 1, 10), ("s2", 1, 20), ("s2", 1, 80)]


def test_what_a_log_sums_up_is_not_counted_beside_the_wire():
    """A compaction has no row; its log's sum of it has one, which is reduced by what is on the wire."""
    compaction, title = at(20, response_id="c", input=400, output=60), at(2, response_id="t", input=30, output=4)
    wire = on_wire("w", title, at(9, response_id="a"), compaction)
    whole = at(22, input=430, output=64, summed=True)
    assert [row[2] for row in totals(wire, in_log("s", at(9, response_id="a"), whole))] == [30, 10, 400]
    more = at(22, input=530, output=64, summed=True, cost_nano=1000)
    rows = counted(wire, in_log("s", at(9, response_id="a"), more))
    assert [(row[2], row[4], row[5], row[10]) for row in rows if row[2] > 20] == [(22.0, 100, 0, 1000 * 100 // 594)]
    elsewhere = at(300, input=430, output=64, summed=True)
    log = in_log("s", at(9, response_id="a"), elsewhere, last_ns=NOON + 400 * SECOND)
    assert len(totals(wire, log)) == 4


def test_the_rest_of_a_sum_goes_with_the_sum():
    """Once another log has the sum as a greater response, what was left of it beside the wire counts no longer."""
    compaction = at(20, response_id="c", input=400, output=60)
    wire = on_wire("w", at(9, response_id="a"), compaction)
    whole = at(22, input=530, output=64, summed=True, key="k")
    log = in_log("s", at(9, response_id="a"), whole, path="1.jsonl")
    assert (1, 130, 4) in [row[1:4] for row in totals(wire, log)]
    other = in_log("s", at(22, input=530, output=900, key="k"), path="2.jsonl")
    assert (1, 130, 4) not in [row[1:4] for row in totals(wire, log, other)]


def test_a_session_of_which_the_log_has_only_a_sum_belongs_there():
    """An agent that is run to compact a session makes no request that has a row."""
    wire = on_wire("w", at(2, response_id="b", input=30), at(20, response_id="c", input=400))
    before = on_wire("v", at(5000, response_id="a"), start_ns=NOON + 5000 * SECOND, last_ns=NOON + 5009 * SECOND)
    log = in_log("s", at(22, input=430, output=10, summed=True), at(5000, response_id="a"), last_ns=NOON + MINUTE * 90)
    assert [row[:3] for row in totals(wire, before, log)] == [("s", 1, 30), ("s", 1, 400), ("s", 1, 10)]
    other = in_log(
        "s", at(22, input=431, output=10, summed=True), at(5000, response_id="a"), last_ns=NOON + MINUTE * 90
    )
    assert [row[:3] for row in totals(wire, other)] == [("s", 1, 431), ("s", 1, 10), ("w", 1, 30), ("w", 1, 400)]


def test_a_log_of_totals_alone_gives_the_session():
    """Where the log has one sum for all requests, these are the wire's, and the session is the log's."""
    wire = on_wire("w", at(2, response_id="b", input=30), at(20, response_id="c", input=400))
    log = in_log("s", at(21, input=430, output=10, summed=True, granularity="session"))
    assert [row[:3] for row in totals(wire, log)] == [("s", 1, 30), ("s", 1, 400)]


def test_tool_calls_on_the_wire_do_not_count_twice():
    """The agent's log has them."""

    def use(key):
        return ToolUse(key=key, time_ns=NOON, tool="bash")

    book = book_of(on_wire("w", at(9), tools=(use("1"),)), in_log("s", at(9), tools=(use("2"),)))
    assert book.query("SELECT COUNT(*) FROM tools", {}) == [(1,)]


def test_a_log_without_times_has_no_pairs():
    """Nor has one whose session has none."""
    log = in_log("s", record(time_ns=None), start_ns=None, last_ns=None)
    assert len(totals(on_wire("w", at(9)), log)) == 2


def test_the_end_of_time_can_be_paired():
    """Times beyond what the ledger holds are its last one."""
    beyond = {"start_ns": 2**64, "last_ns": 2**64}
    row = record(time_ns=2**64, latency_ms=7)
    assert [row[:2] for row in totals(on_wire("w", row, **beyond), in_log("s", row, **beyond))] == [("s", 1)]


def test_very_many_alike_are_paired_in_little_time():
    """A storm of equal requests is paired piece by piece, and every one once."""
    many = [at(5 + n / 1000) for n in range(1500)]
    book = book_of(on_wire("w", *many), in_log("s", *many))
    assert book.query("SELECT COUNT(*), COUNT(DISTINCT time_ns) FROM records", {}) == [(1500, 1500)]


RECORDS = st.fixed_dictionaries(
    {
        "second": st.sampled_from([0, 1, 3, 4, 15, 4000, 4001]),
        "input": st.sampled_from([1, 2]),
        "output": st.sampled_from([1, 2]),
        "response_id": st.sampled_from(["", "", "a", "b"]),
        "model": st.sampled_from(["m", "n"]),
        "provider": st.sampled_from(["acme", "acme", "shop", "127.0.0.1"]),
        "latency_ms": st.sampled_from([None, 5.0, 2500.0]),
        "failed": st.booleans(),
        "summed": st.sampled_from([False, False, False, True]),
        "quality": st.sampled_from(["exact", "partial"]),
        "key": st.sampled_from(["", "", "k"]),
        "superseded_by": st.sampled_from(["", "", "", "codex:s1", "native:w1"]),
    }
)
SESSIONS = st.lists(
    st.tuples(
        st.sampled_from(["w1", "w2", "s1", "s2"]), st.sampled_from(["x", "y"]), st.lists(RECORDS, min_size=1, max_size=4)
    ),
    min_size=2, max_size=5,
)  # fmt: skip


def made(entry, number):
    """A log of a session: `w…` was recorded on the wire."""
    name, source, drawn = entry
    records = [at(**fields) for fields in drawn]
    facts = {"path": f"{name}-{source}-{number}.jsonl"}
    if name.startswith("w"):  # one of them is an hour later
        facts |= {"start_ns": NOON + 3990 * SECOND, "last_ns": NOON + 4010 * SECOND} if name == "w2" else {}
        return on_wire(name, *records, of={"x": "codex", "y": ""}[source], **facts)
    facts["last_ns"] = NOON + 4010 * SECOND
    return in_log(name, *records, source={"x": "codex", "y": "pi"}[source], **facts)


@examples(60)
@given(st.data())
def test_no_order_changes_what_counts(data):
    """In whatever order logs are read, all at once or one after the other, and with others that are forgotten again."""
    logs = [made(entry, number) for number, entry in enumerate(data.draw(SESSIONS))]
    expected = answer_of(book_of(*logs))
    order = data.draw(st.permutations(logs))
    book = book_of()
    for one in order:
        book.add_scan(scan_of(one))
        if data.draw(st.booleans()):
            book.reconcile()
    assert answer_of(book) == expected
    lost = data.draw(st.sampled_from(logs))
    book.forget([number for (number,) in book.query("SELECT id FROM files WHERE path = :path", {"path": lost.path})])
    assert answer_of(book) == answer_of(book_of(*[one for one in logs if one is not lost]))
    book.add_scan(scan_of(lost))
    assert answer_of(book) == expected


@examples(60)
@given(SESSIONS)
def test_every_request_counts_once(drawn):
    """As many count as there are on the wire and in logs, less the pairs; and a request is in one pair at most."""
    drawn = [(name, source, [{**one, "key": "", "superseded_by": "", "summed": False} for one in records])
             for name, source, records in drawn]  # fmt: skip
    logs = [made(entry, number) for number, entry in enumerate(drawn)]
    book = book_of(*logs)
    pairs = book.query("SELECT log_file, log_n FROM wire_matches WHERE log_n IS NOT NULL", {})
    assert len(pairs) == len(set(pairs))
    assert book.query("SELECT COUNT(*) FROM records", {}) == [(sum(len(one.records) for one in logs) - len(pairs),)]


# --- logs in a home


def looked(home):
    """What the ledger's file counts of a home: (session, requests, tokens, latencies)."""
    sql = """SELECT s.session, SUM(r.requests), SUM(r.input + r.cache_read + r.output), COUNT(r.latency_ms) FROM records r
        JOIN sessions s ON s.id = r.session_id GROUP BY 1 ORDER BY 1"""

    def answer(book):
        assert compare_derived(book.copy()) == []
        return book.query(sql, {})

    return ask(Where(ledger=home.ledger, env=home.env, prices=PRICES), answer)


@pytest.fixture
def home(tmp_path):
    """A home with a log of Claude Code's and a log from the wire, each with two requests, one of them in both."""
    home = LittleHome(tmp_path)
    home.append(LOG, [("prompt", 0, 1), ("answer", 1, 2), ("answer", 2, 2)])
    home.append(WIRE, [("answer", 2, 2), ("answer", 3, 1)])
    return home


BOTH = [(PARENT, 3, 171, 3)]
"""One request is only in the log, one in both, and one only on the wire."""


@pytest.mark.parametrize("first", [LOG, WIRE])
def test_logs_grow_one_after_the_other(tmp_path, first):
    """Whichever is read first, and whenever the ledger is asked."""
    home = LittleHome(tmp_path)
    rows = {LOG: [("prompt", 0, 1), ("answer", 1, 2), ("answer", 2, 2)], WIRE: [("answer", 2, 2), ("answer", 3, 1)]}
    for path in (first, LOG if first == WIRE else WIRE):
        for row in rows[path]:
            home.append(path, [row])
            looked(home)
    assert looked(home) == BOTH


@pytest.mark.parametrize("lost", [LOG, WIRE])
def test_a_log_that_is_gone_is_remembered_until_it_is_forgotten(home, lost):
    """The other one counts as before; afterwards it counts alone."""
    assert looked(home) == BOTH
    home.delete(lost)
    assert looked(home) == BOTH
    book = open_ledger(home.ledger, PRICES)
    book.forget(book.missing(GONE))
    book.close()
    alone = {LOG: [("wire", 2, 114, 2)], WIRE: [(PARENT, 2, 115, 1)]}
    assert looked(home) == alone[lost]
    home.restore(lost)
    assert looked(home) == BOTH


@pytest.mark.parametrize("changed", [LOG, WIRE])
def test_a_log_that_is_rewritten_is_paired_anew(home, changed):
    """Without its first line with a response, and then as it was."""
    looked(home)
    content = home.content(changed)
    home.drop_line(changed, 1)
    assert looked(home) != BOTH
    home.put(changed, content, home.tick())
    assert looked(home) == BOTH


def test_a_log_that_is_elsewhere_does_not_count(home):
    """With another folder of our own logs the agent's log stands alone; back again it does not."""
    assert looked(home) == BOTH
    env, home.env = home.env, home.env | {"SESSIONLOG_DIR": str(home.folder / "none")}
    assert looked(home) == [(PARENT, 2, 115, 1)]
    home.env = env
    assert looked(home) == BOTH


def test_a_home_without_the_wire_is_asked_once(tmp_path):
    """Reconciling looks for a session on the wire, finds none, and asks nothing else about it."""
    book = book_of(in_log("s", at(1)))
    statements = []
    book.connection.set_trace_callback(statements.append)
    book.add_scan(scan_of(in_log("t", at(2), path="t.jsonl")))
    book.reconcile()
    assert sum("wire_matches" in sql for sql in statements) == 1
