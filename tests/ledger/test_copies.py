"""Copies: one response counts once, and which parts of which copy count does not depend on what was read first."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.hashes import hash_name
from sessionlog.sources.record import CopyRank, ToolUse
from tests.ledger.entries import NOON, book_of, record, scan_of, session
from tests.profiles import examples

LAW = examples(80)
COLUMNS = """SELECT r.key, s.session, r.time_ns, r.copy_rank, r.input, r.output, r.cost_nano, r.latency_ms, r.requests,
    r.failed, r.active_ms, l.model, l.quality, l.project, l.branch, l.agent
    FROM records r JOIN sessions s ON s.id = r.session_id JOIN labels l ON l.id = r.label_id"""

COPIES = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["", "a", "a", "b", "c"]),
        "family": st.sampled_from(["", "f"]),
        "copy_rank": st.sampled_from(list(CopyRank)),
        "time_ns": st.sampled_from([None, NOON, NOON + 1]),
        "input": st.sampled_from([1, 2]),
        "output": st.sampled_from([1, 2]),
        "cost_nano": st.sampled_from([None, 7]),
        "latency_ms": st.sampled_from([None, 5.0]),
        "failed": st.booleans(),
        "active_ms": st.sampled_from([0, 3]),
        "model": st.sampled_from(["m", "n"]),
        "quality": st.sampled_from(["exact", "partial"]),
        "project": st.sampled_from(["", "/p"]),
        "branch": st.sampled_from(["main", "topic"]),
        "agent": st.sampled_from(["main", "helper"]),
        "superseded_by": st.sampled_from(["", "", "", "native:s0", "other:s1"]),
    }
)
LOGS = st.lists(st.tuples(st.sampled_from(["s0", "s1"]), st.sampled_from(["x", "y"]), COPIES), min_size=2, max_size=6)


KEYS = {hash_name(name, b"native"): name for name in ("a", "b", "c", "d", "e", "k", "k1", "k2", "t")}
KEYS |= {hash_name(f"f\0{name}", b"native"): name for name in ("a", "b", "c", "d", "e", "k1", "k2")}


def counted(entries):
    """What a book counts of (session, path, copy), in the order in which they are entered."""
    book = book_of(*[session(name, record(**fields), path=f"{path}.jsonl") for name, path, fields in entries])
    return sorted(((KEYS.get(key, ""), *rest) for key, *rest in book.query(COLUMNS, {})), key=repr)


def specified(entries):
    """The rules, told without any order: (key, session, time, copy_rank, output, input) of what counts."""
    sessions = {f"native:{name}" for name, _, _ in entries}
    responses, alone = {}, []
    for name, path, fields in entries:
        entry = {**fields, "session": name, "path": f"{path}.jsonl"}
        if fields["key"]:
            responses.setdefault((fields["family"] or fields["key"], fields["key"]), []).append(entry)
        elif fields["superseded_by"] not in sessions:
            alone.append(("", name, fields["time_ns"], int(fields["copy_rank"]), fields["output"], fields["input"]))
    best = {}
    for name, copies in responses.items():
        copy_rank = max(copy["copy_rank"] for copy in copies)
        best[name] = [copy for copy in copies if copy["copy_rank"] == copy_rank]
    top: dict = {}
    for (family, _), copies in best.items():
        top[family] = max(top.get(family, CopyRank.EMBEDDED), copies[0]["copy_rank"])
    found = []
    for (family, key), copies in best.items():
        copy_rank = int(copies[0]["copy_rank"])
        if (top[family] >= CopyRank.COPIED and copy_rank < top[family]) or any(
            copy["superseded_by"] in sessions for copy in copies
        ):
            continue
        output, total = max((copy["output"], copy["output"] + copy["input"]) for copy in copies)
        first = min(
            copies,
            key=lambda c: (c["time_ns"] is None, c["time_ns"] or 0, c["path"].encode(), -c["active_ms"], c["session"]),
        )
        found.append((key, first["session"], first["time_ns"], copy_rank, output, total - output))
    return sorted([*found, *alone], key=repr)


@LAW
@given(LOGS)
def test_what_counts_is_what_the_rules_say(entries):
    """Rank, then output, then all tokens; session and time of the earliest copy; families; tellers."""
    assert [(r[0], r[1], r[2], r[3], r[5], r[4]) for r in counted(entries)] == specified(entries)


@LAW
@given(st.data())
def test_no_order_changes_what_counts(data):
    """Every column of every record is the same in whatever order the logs are read."""
    entries = data.draw(LOGS)
    assert counted(data.draw(st.permutations(entries))) == counted(entries)


def same(*copies):
    """What counts of copies of one response, each in a log of its own; the same in every order."""
    entries = [(f"s{n}", f"p{n}", {"key": "k", **fields}) for n, fields in enumerate(copies)]
    [found] = {repr(counted(order)) for order in permutations(entries)}
    assert found == repr(counted(entries))
    return counted(entries)


def test_a_real_row_counts_over_greater_echoes():
    """An echo may be ahead of the row that is final; it is an echo all the same."""
    [row] = same(
        {"copy_rank": CopyRank.EMBEDDED, "output": 90}, {"output": 7}, {"copy_rank": CopyRank.SIDECHAIN, "output": 80}
    )
    assert (row[1], row[5]) == ("s1", 7)


def test_counts_are_the_greatest_and_the_place_the_earliest():
    """A fork that holds the final count does not take the response away from where it was made."""
    first = {"time_ns": NOON, "output": 1, "project": "/first", "branch": "one", "active_ms": 40, "quality": "partial"}
    final = {"time_ns": NOON + 5, "output": 9, "project": "/fork", "branch": "two", "active_ms": 2, "cost_nano": 3}
    [row] = same(final, first, {"time_ns": NOON + 9, "output": 4})
    assert row[1:3] == ("s1", NOON)
    assert row[5:7] == (9, 3)
    assert row[10:15] == (40, "m", "exact", "/first", "one")


def test_a_copy_that_becomes_real_takes_its_family_along():
    """Two echoes of one response under two keys, and then the response itself under one of them."""
    entries = [
        ("a", "a", {"key": "k1", "family": "f", "copy_rank": CopyRank.EMBEDDED}),
        ("b", "b", {"key": "k2", "family": "f", "copy_rank": CopyRank.EMBEDDED}),
        ("c", "c", {"key": "k1", "family": "f"}),
    ]
    for order in permutations(entries):
        assert [row[:2] for row in counted(order)] == [("k1", "c")]


def test_real_rows_of_one_family_are_responses_of_their_own():
    """A family only tells what copies may be left out for."""
    entries = [(name, name, {"key": name, "family": "f"}) for name in "ab"]
    assert [row[0] for row in counted(entries)] == ["a", "b"]


def test_a_family_that_grows_strong_leaves_out_all_that_was_weak():
    """Also a weak copy under a key that counted before, and not one that becomes REAL itself afterwards."""
    weak = {"family": "f", "copy_rank": CopyRank.SIDECHAIN}
    entries = [(name, name, {"key": name, **weak}) for name in "abc"]
    entries += [("d", "d", {"key": "d", "family": "f"}), ("e", "e", {"key": "a", **weak})]
    assert [row[0] for row in counted(entries)] == ["d"]
    entries += [(name, name, {"key": name, "family": "f"}) for name in "ab"]
    assert [row[0] for row in counted(entries)] == ["a", "b", "d"]


@pytest.mark.parametrize("copy_rank", list(CopyRank))
def test_a_great_family_is_settled_at_once(copy_rank):
    """A trace may hold thousands of calls: statements are as many for one copy as for many."""
    statements = []
    for count in (3, 300):
        book = book_of()
        asked = []
        book.connection.set_trace_callback(asked.append)
        for name in "st":
            records = [record(key=str(n), family="f", copy_rank=copy_rank) for n in range(count)]
            book.add_scan(scan_of(session(name, *records)))
        assert book.query("SELECT COUNT(*) FROM records", {}) == [(count,)]
        statements.append(sum(sql.startswith("SELECT") for sql in asked))
    assert statements[0] == statements[1]


def test_copies_in_different_agents_logs_are_no_copies():
    """A key names a response within its source."""
    book = book_of(*[session("s", record(key="k"), source=source) for source in ("one", "two")])
    assert book.query("SELECT COUNT(*) FROM records", {}) == [(2,)]


@pytest.mark.parametrize(("known", "left"), [("s1", []), ("s2", [("k", 5)])])
def test_what_a_known_session_tells_better_does_not_count(known, left):
    """Whichever of two copies says so, before or after the other; where that session is unknown it counts."""
    entries = [
        ("a", "a", {"key": "k"}),
        ("b", "b", {"key": "k", "superseded_by": "native:s1"}),
        (known, "t", {"key": ""}),
    ]
    for order in permutations(entries):
        assert [(row[0], row[5]) for row in counted(order) if row[0]] == left


# --- tool calls


def calls(uses):
    """(session, finished, failed) of the calls that a book counts."""
    book = book_of(*[session(name, path=f"{name}.jsonl", tools=(use,)) for name, use in uses])
    sql = "SELECT s.session, t.finished, t.failed, t.time_ns FROM tools t JOIN sessions s ON s.id = t.session_id"
    return book.query(sql, {})


def use(key="c", time_ns=NOON, **fields):
    return ToolUse(key=key, time_ns=time_ns, tool="bash", **fields)


def test_of_two_copies_of_a_call_the_finished_one_counts():
    """A fork that was made while the tool ran never got its result."""
    uses = [("fork", use()), ("late", use(time_ns=NOON + 9, finished=True, failed=True)), ("own", use(finished=True))]
    for order in permutations(uses):
        assert calls(order) == [("own", 1, 0, NOON)]


@pytest.mark.parametrize(("known", "left"), [("s1", ["t"]), ("s2", ["c", "t"])])
def test_a_call_that_a_known_session_tells_better_does_not_count(known, left):
    """As with responses: whichever copy says so, and only where that session is known."""
    uses = [("a", use(finished=True)), ("b", use(superseded_by="native:s1")), (known, use("t"))]
    for order in permutations(uses):
        book = book_of(*[session(name, tools=(one,)) for name, one in order])
        book.reconcile()
        assert book.query("SELECT COUNT(*) FROM tools", {}) == [(len(left),)]


@LAW
@given(st.data())
def test_no_order_changes_which_call_counts(data):
    """All of a call is of one copy."""
    fields = st.builds(
        use, time_ns=st.sampled_from([None, NOON, NOON + 1]), finished=st.booleans(), failed=st.booleans(),
        duration_ms=st.sampled_from([None, 1.0, 2.0]), output_bytes=st.sampled_from([0, 4]),
    )  # fmt: skip
    uses = data.draw(st.lists(st.tuples(st.sampled_from("ab"), fields), min_size=2, max_size=5))
    assert calls(data.draw(st.permutations(uses))) == calls(uses)
