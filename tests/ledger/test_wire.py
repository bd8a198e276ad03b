"""Wire: a request that was recorded on the wire, and the agent's own log of it, count once."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.ledger.ask import Where, ask
from sessionlog.ledger.opening import open_ledger
from sessionlog.ledger.schema import GONE
from sessionlog.ledger.verify import compare_derived
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


HOMES = """SELECT s.source, s.session, SUM(r.requests), SUM(r.input) FROM quarter_hours r
    JOIN sessions s ON s.id = r.session_id GROUP BY 1, 2 ORDER BY 1, 2"""


def answer_of(book):
    """What counts, by session; derived values are as if they were derived anew."""
    rows = sorted(book.query(COUNTED, {"noon": NOON}), key=lambda row: (row[:6], repr(row)))
    assert book.query(SUMMED.format("records"), {}) == book.query(SUMMED.format("quarter_hours"), {})
    assert not list(compare_derived(book.copy()))
    return rows


def whole_answer_of(book):
    """What counts, and what is summed in which session."""
    return answer_of(book), book.query(HOMES, {})


def totals(*sessions):
    """(session, requests, input, output, latency) of what counts."""
    return [(row[1], row[3], row[4], row[5], row[6]) for row in counted(*sessions)]


def test_a_request_in_both_counts_once():
    """As the log has it."""
    wire = on_wire("w", at(9, response_id="a", latency_ms=4000, model="served"))
    log = in_log("s", at(7, response_id="a", latency_ms=1, model="asked"))
    [row] = counted(wire, log)
    assert row[:9] == ("codex", "s", 7.0, 1, 10, 5, 1, "asked", "/work")


@pytest.mark.parametrize(("requests", "sessions"), [((at(9),), ["s"]), ((at(9), at(20, input=3)), ["s", "w"])])
def test_a_session_of_which_nothing_is_left_is_not_listed(requests, sessions):
    """It is listed with what no log has."""
    book = book_of(on_wire("w", *requests), in_log("s", at(9)))
    assert [name for _, name in book.query(LISTED, {})] == sessions


def test_a_session_on_the_wire_without_a_response_is_listed():
    """As every session without one; it counts in no sum."""
    book = book_of(on_wire("w", counted=False))
    assert book.query(LISTED, {}) == [("native", "w")]


@pytest.mark.parametrize(("source", "of", "sessions"), [("codex", "", 1), ("codex", "codex", 1), ("pi", "codex", 2)])
def test_by_tokens_only_the_named_source_is_asked(source, of, sessions):
    """Where none is named, any."""
    rows = counted(on_wire("w", at(9), of=of), in_log("s", at(9), source=source))
    assert len({row[1] for row in rows}) == len(rows) == sessions


def test_an_agent_that_another_one_started_counts_once():
    """Its requests pass the same way, and are known by their ids; equal tokens alone would not be enough."""
    wire = on_wire("w", at(9, response_id="a"), at(12, response_id="p"), of="codex")
    logs = in_log("s", at(9, response_id="a")), in_log("p", at(12, response_id="p"), source="pi")
    assert [row[:2] for row in totals(wire, *logs)] == [("s", 1), ("p", 1)]


def test_what_no_log_has_is_summed_in_the_session_of_the_others():
    """That in which most of them are."""
    wire = on_wire("w", at(2, input=3), at(9, response_id="a"), at(20, response_id="b"), at(30, response_id="c"))
    logs = in_log("s", at(9, response_id="a")), in_log("t", at(20, response_id="b"), at(30, response_id="c"))
    book = book_of(wire, *logs)
    assert book.query(HOMES, {}) == [("codex", "s", 1, 10), ("codex", "t", 3, 23)]
    book.forget(book.query("SELECT id FROM files WHERE path = 't.jsonl'", {})[0])
    assert book.query(HOMES, {}) == [("codex", "s", 4, 33)]
    book.forget(book.query("SELECT id FROM files WHERE path = 's.jsonl'", {})[0])
    assert book.query(HOMES, {}) == [("native", "w", 4, 33)]


def test_what_no_log_has_counts_on_the_wire():
    """A title that its log leaves out, and what no log knows at all."""
    title = at(2, response_id="t", input=3, output=1, model="little", latency_ms=500)
    wire = on_wire("w", title, at(9, response_id="a"), project="/work")
    rows = counted(wire, in_log("s", at(8, response_id="a")))
    assert [(*row[1:6], row[7], row[8]) for row in rows] == [
        ("s", 8.0, 1, 10, 5, "m", "/work"),
        ("w", 2.0, 1, 3, 1, "little", "/work"),
    ]
    assert [row[:2] for row in totals(on_wire("w", at(1), at(2)), in_log("s", at(9, input=11)))] == [
        ("s", 1), ("w", 1), ("w", 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("logged", "wired", "session"),
    [
        ({"output": 98}, {"output": 120}, "w"),
        ({"output": 120}, {"output": 98}, "s"),
        ({"output": 500, "quality": "estimated"}, {"output": 98}, "w"),
        ({"output": 1, "quality": "partial"}, {"output": 98}, "w"),
        ({"output": 98}, {"output": 300, "quality": "partial"}, "s"),
        ({"output": 98, "input": 9}, {"output": 98, "input": 8}, "s"),
    ],
)
def test_where_the_tokens_differ_the_better_record_counts(logged, wired, session):
    """The better quality, then the greatest output, then the greatest total."""
    [row] = counted(on_wire("w", at(9, response_id="a", **wired)), in_log("s", at(9, response_id="a", **logged)))
    better = {"input": 10, **({"w": wired, "s": logged}[session])}
    assert (row[1], row[4:6], row[9]) == (session, (better["input"], better["output"]), "exact")


def test_two_requests_with_two_ids_are_never_one():
    """However alike they are."""
    assert len(totals(on_wire("w", at(9, response_id="a")), in_log("s", at(9, response_id="b")))) == 2


def test_ids_that_come_again_are_of_the_time():
    """Some servers have few ids, and use them for months."""
    wire = on_wire("w", at(0, response_id="a"), at(5000, response_id="a"), last_ns=NOON + 5000 * SECOND)
    assert [row[0] for row in totals(wire, in_log("s", at(5001, response_id="a"), last_ns=NOON + 5001 * SECOND))] == [
        "s", "w",
    ]  # fmt: skip


def test_one_id_for_all_answers_hides_none():
    """As some gateways give: of equal ids those with equal tokens are the same."""
    wire = on_wire("w", *(at(second, response_id="x", input=second) for second in (1, 5, 9)))
    log = in_log("s", *(at(second, response_id="x", input=second) for second in (5, 9)))
    assert [row[:3] for row in totals(wire, log)] == [("s", 1, 5), ("s", 1, 9), ("w", 1, 1)]


def test_equal_ids_come_before_equal_tokens():
    """Although another row with equal tokens is nearer."""
    wire = on_wire("w", at(10, response_id="a"))
    rows = totals(wire, in_log("s", at(10), at(40, response_id="a", input=9, output=9)))
    assert sorted(row[2] for row in rows) == [9, 10]


def test_a_log_without_ids_is_paired_by_tokens_in_the_time_of_the_wire():
    """Not what it has long before or after."""
    wire = on_wire("w", at(10, response_id="a"), at(40, response_id="b", input=20))
    assert len(totals(wire, in_log("s", at(3), at(51, input=20)))) == 2
    log = in_log("s", at(-3000), at(3000, input=20), start_ns=NOON - 3000 * SECOND, last_ns=NOON + 3000 * SECOND)
    assert len(totals(wire, log)) == 4


def test_clocks_may_differ():
    """By seconds without ids, by minutes with them."""
    assert len(totals(on_wire("w", at(10)), in_log("s", at(-7), start_ns=NOON - MINUTE))) == 1
    assert len(totals(on_wire("w", at(10, response_id="a")), in_log("s", at(310, response_id="a")))) == 1


def test_equal_tokens_are_paired_in_order():
    """The first with the first; of more on the wire the rest is left there."""
    wire = on_wire("w", at(1), at(5), at(9))
    rows = counted(wire, in_log("s", at(5), at(9)))
    assert [(row[1], row[2]) for row in rows] == [("s", 5.0), ("s", 9.0), ("w", 9.0)]


def test_a_retry_counts_as_the_request_that_it_is():
    """The first attempt has failed, and the log does not know it."""
    failed = at(2, failed=True, input=0, output=0, latency_ms=30)
    rows = counted(on_wire("w", failed, at(9, latency_ms=4000)), in_log("s", at(9)))
    assert [(row[2], row[3], row[4]) for row in rows] == [(9.0, 1, 10), (2.0, 1, 0)]
    both = counted(on_wire("w", failed, at(9)), in_log("s", at(3, failed=True, input=0, output=0), at(9)))
    assert len(both) == 2


def test_two_sessions_on_the_wire_are_one_session_of_the_agent():
    """It was resumed: each gives its own part."""
    first = on_wire("w1", at(5), at(6, input=99), last_ns=NOON + 10 * SECOND)
    second = on_wire("w2", at(3000), start_ns=NOON + 2990 * SECOND, last_ns=NOON + 3010 * SECOND)
    log = in_log("s", at(5), at(3000), last_ns=NOON + 3000 * SECOND)
    assert [row[:3] for row in totals(first, second, log)] == [("s", 1, 10), ("s", 1, 10), ("w1", 1, 99)]


def test_one_session_on_the_wire_is_two_sessions_of_the_agent():
    """What only the wire has stays there."""
    wire = on_wire("w", at(1, input=70), at(5), at(41, input=20))
    rows = totals(wire, in_log("s1", at(5)), in_log("s2", at(41, input=20)))
    assert [row[:3] for row in rows] == [("s1", 1, 10), ("s2", 1, 20), ("w", 1, 70)]


COMPACTION = at(20, response_id="c", input=400, output=60)
TITLE = at(2, response_id="t", input=30, output=4)


@pytest.mark.parametrize(
    ("whole", "counting"),
    [
        ({"input": 430, "output": 64}, [10, 430]),  # both of them: the log has them in its session
        ({"input": 400, "output": 60}, [10, 30, 400]),  # one of them
        ({"input": 530, "output": 64}, [10, 530]),  # and others, which did not pass on the wire
        ({"input": 330, "output": 64}, [10, 30, 400]),  # the wire has more
    ],
)
def test_what_a_log_sums_up_is_not_counted_beside_the_wire(whole, counting):
    """A compaction has no row; its log's sum of it has one: either counts."""
    wire = on_wire("w", TITLE, at(9, response_id="a"), COMPACTION)
    log = in_log("s", at(9, response_id="a"), at(22, summed=True, **whole))
    rows = totals(wire, log)
    assert sorted(row[2] for row in rows) == counting
    assert [row[0] for row in rows if row[2] == whole["input"]] == ["s"] * (whole["input"] >= 400)


def test_a_sum_of_another_time_counts():
    """What it sums up did not pass while this was recorded."""
    wire = on_wire("w", TITLE, at(9, response_id="a"), COMPACTION)
    elsewhere = at(300, input=430, output=64, summed=True)
    log = in_log("s", at(9, response_id="a"), elsewhere, last_ns=NOON + 400 * SECOND)
    assert len(totals(wire, log)) == 4


def test_a_sum_that_is_gone_leaves_the_wire():
    """Once another log has the sum as a greater response, what passed on the wire counts again."""
    wire = on_wire("w", at(9, response_id="a"), COMPACTION)
    log = in_log("s", at(9, response_id="a"), at(22, input=530, summed=True, key="k"), path="1.jsonl")
    assert [row[2] for row in totals(wire, log)] == [10, 530]
    other = in_log("s", at(22, input=530, output=900, key="k"), path="2.jsonl")
    assert sorted(row[2] for row in totals(wire, log, other)) == [10, 400, 530]


@pytest.mark.parametrize(("project", "counting"), [("/work", [430]), ("/other", [30, 400, 430])])
def test_a_log_of_totals_alone_counts_once(project, counting):
    """Of a session on the wire without any pair they are those of its agent, in its project."""
    wire = on_wire("w", at(2, response_id="b", input=30), at(20, response_id="c", input=400), project=project)
    log = in_log("s", at(21, input=430, output=10, summed=True, granularity="session"))
    assert sorted(row[2] for row in totals(wire, log)) == counting


def test_a_log_without_times_has_no_pairs():
    """Nor has one whose session has none."""
    log = in_log("s", record(time_ns=None), start_ns=None, last_ns=None)
    assert len(totals(on_wire("w", at(9)), log)) == 2


def test_the_end_of_time_can_be_paired():
    """Times beyond what the ledger holds are its last one."""
    beyond = {"start_ns": 2**64, "last_ns": 2**64}
    row = record(time_ns=2**64)
    assert [row[:2] for row in totals(on_wire("w", row, **beyond), in_log("s", row, **beyond))] == [("s", 1)]


def test_very_many_alike_are_paired_in_little_time():
    """A storm of equal requests, each of which counts once."""
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
    expected = whole_answer_of(book_of(*logs))
    order = data.draw(st.permutations(logs))
    book = book_of()
    for one in order:
        book.add_scan(scan_of(one))
        if data.draw(st.booleans()):
            book.reconcile()
    assert whole_answer_of(book) == expected
    lost = data.draw(st.sampled_from(logs))
    book.forget([number for (number,) in book.query("SELECT id FROM files WHERE path = :path", {"path": lost.path})])
    assert whole_answer_of(book) == whole_answer_of(book_of(*[one for one in logs if one is not lost]))
    book.add_scan(scan_of(lost))
    assert whole_answer_of(book) == expected


@examples(60)
@given(SESSIONS)
def test_what_does_not_count_is_the_same_as_what_does(drawn):
    """Each that was taken off is of the wire and of a log, or the other way; nothing else is missing."""
    drawn = [(name, source, [{**one, "key": "", "superseded_by": "", "summed": False} for one in records])
             for name, source, records in drawn]  # fmt: skip
    logs = [made(entry, number) for number, entry in enumerate(drawn)]
    book = book_of(*logs)
    left = """SELECT s.on_wire_of IS NOT NULL, COUNT(*) FROM responses r JOIN all_sessions s ON s.id = r.session_id
        WHERE {} GROUP BY 1"""
    off, on = (dict(book.query(left.format(condition), {})) for condition in ("NOT r.counts", "r.counts"))
    assert off.get(1, 0) <= on.get(0, 0)
    assert off.get(0, 0) <= on.get(1, 0)
    assert sum(off.values()) + sum(on.values()) == sum(len(one.records) for one in logs)


# --- logs in a home


def looked(home):
    """What the ledger's file counts of a home: (session, requests, tokens, latencies)."""
    sql = """SELECT s.session, SUM(r.requests), SUM(r.input + r.cache_read + r.output), COUNT(r.latency_ms) FROM records r
        JOIN sessions s ON s.id = r.session_id GROUP BY 1 ORDER BY 1"""

    def answer(book):
        assert not list(compare_derived(book.copy()))
        return book.query(sql, {})

    return ask(Where(ledger=home.ledger, env=home.env, prices=PRICES), answer)


@pytest.fixture
def home(tmp_path):
    """A home with a log of Claude Code's and a log from the wire, each with two requests, one of them in both."""
    home = LittleHome(tmp_path)
    home.append(LOG, [("prompt", 0, 1), ("answer", 1, 2), ("answer", 2, 2)])
    home.append(WIRE, [("answer", 2, 2), ("answer", 3, 1)])
    return home


BOTH = [(PARENT, 2, 115, 1), ("wire", 1, 56, 1)]
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


@pytest.mark.parametrize(("changed", "line"), [(LOG, 1), (WIRE, 2)])
def test_a_log_that_is_rewritten_is_paired_anew(home, changed, line):
    """Without a line with a response that counts, which is remembered, and then as it was."""
    looked(home)
    content = home.content(changed)
    home.drop_line(changed, line)
    assert [row[:3] for row in looked(home)] == [row[:3] for row in BOTH]
    home.put(changed, content, home.tick())
    assert looked(home) == BOTH


def test_a_log_that_is_elsewhere_does_not_count(home):
    """With another folder of our own logs the agent's log stands alone; back again it does not."""
    assert looked(home) == BOTH
    env, home.env = home.env, home.env | {"SESSIONLOG_DIR": str(home.folder / "none")}
    assert looked(home) == [(PARENT, 2, 115, 1)]
    home.env = env
    assert looked(home) == BOTH


def test_a_home_without_the_wire_is_asked_nothing_else(tmp_path):
    """Reconciling looks for a session on the wire, before and after a change, and finds none."""
    book = book_of(in_log("s", at(1)))
    book.reconcile()
    statements = []
    book.connection.set_trace_callback(statements.append)
    book.add_scan(scan_of(in_log("t", at(2), path="t.jsonl")))
    book.reconcile()
    looks = [sql for sql in statements if "on_wire_of" in sql and sql.startswith("SELECT")]
    assert [sql.rsplit("LIMIT", 1)[1] for sql in looks] == [" 1", " 1"]
