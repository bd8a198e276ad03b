"""Rows: what a log holds as rows of the ledger's tables, priced, with names once and keys as numbers."""

import pickle
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from sessionlog.hashes import hash_name
from sessionlog.ledger.columns import Call, Facts, Label, Name, Response
from sessionlog.ledger.handover import rows_in_file
from sessionlog.ledger.rows import bucket_of
from sessionlog.ledger.sessions import facts_of
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.record import ToolUse
from sessionlog.sources.spool import Lazily
from tests.ledger.entries import NOON, record, session
from tests.profiles import examples

PRICES = PriceBook.load()


class Rows(NamedTuple):
    """The rows of a log in the tables."""

    facts: list[Facts]
    responses: list[Response]
    calls: list[Call]
    labels: list[Label]
    names: list[Name]
    sessions: list[tuple[str, str, str]]


def rows_of(*sessions, prices=PRICES, large=False):
    """The rows of these sessions; those of a large log are decoded on each access."""
    if large:
        sessions = Lazily(len(sessions), sessions.__iter__)
    with rows_in_file(":memory:", prices) as (connection, rows):
        rows.insert(sessions, 7)

        def select(row, table):
            found = connection.execute(f"SELECT {', '.join(row._fields)} FROM {table}")
            return [row._make(one) for one in found]

        named = connection.execute("SELECT source, session, place FROM all_sessions ORDER BY id").fetchall()
        return Rows(
            facts=select(Facts, "log_sessions ORDER BY n"),
            responses=select(Response, "responses ORDER BY n"),
            calls=select(Call, "calls ORDER BY n"),
            labels=select(Label, "labels ORDER BY id"),
            names=select(Name, "names ORDER BY id"),
            sessions=named,
        )


def call(key, **fields):
    """A call of Bash at noon."""
    return ToolUse(key=key, time_ns=NOON, tool="Bash", **fields)


def test_names_are_kept_once():
    """However many responses have them in common."""
    scan = rows_of(session("a", record(), record()), session("b", record(), record(model="n")))
    assert [row.label_id for row in scan.responses] == [1, 1, 1, 2]
    assert [label.model for label in scan.labels] == ["m", "n"]


def test_a_response_is_a_row_of_its_table():
    """And so is a call."""
    rows = rows_of(session("a", record(latency_ms=50, cost_nano=7), tools=(call("1"),)))
    [row], [used] = rows.responses, rows.calls
    assert (row.file_id, used.file_id, row.session_id) == (7, 7, used.session_id)
    assert (row.time_ns, row.input, row.output) == (NOON, 10, 5)
    assert (row.recorded_nano, row.cost_nano, row.estimate_nano, row.counts) == (7, 7, None, 1)
    assert used.time_ns == NOON


def test_every_value_is_in_its_column():
    """Rows are made by position, which no type checker can compare with the names."""
    one = record(
        input=1, output=20, cache_read=3, cache_write=4, reasoning=5, cache_write_1h=2, latency_ms=50.0, cost_nano=7, requests=6, active_ms=8, copy_rank=1, superseded_by="codex:x",
        response_id="r", summed=True, provider="p", model="m", response_model="n", project="/x", branch="b", version="v",
        agent="a", granularity="request", quality="partial", speed="fast", service_tier="flex", skill="s", plugin="q",
        mcp="c", region="us", kind="advisor", searches=11, extra_nano=3,
    )  # fmt: skip
    rows = rows_of(session("a", one, tools=(call("1", server="w", failed=True, finished=True, output_bytes=9),)))
    [response], [used] = rows.responses, rows.calls
    numbers = {"input": 1, "output": 20, "cache_read": 3, "cache_write": 4, "cache_write_1h": 2, "reasoning": 5}
    numbers |= {"requests": 6, "failed": 0, "recorded_nano": 7, "cost_nano": 7, "estimate_nano": None, "priced": 1}
    numbers |= {"searches": 11, "recorded_extra_nano": 3, "extra_nano": 3}
    others = {
        "copy_rank": 1,
        "superseded_by": "codex:x",
        "time_ns": NOON,
        "latency_ms": 50.0,
        "active_ms": 8,
        "summed": 1,
    }
    found = response._asdict()
    assert {name: found[name] for name in (*numbers, *others)} == numbers | others
    assert found["response_id"] != found["latency_bucket"] == bucket_of(50.0)
    assert rows.labels == [
        Label(
            provider="p", model="m", response_model="n", project="/x", branch="b", version="v", agent="a",
            granularity="request", quality="partial", speed="fast", service_tier="flex", skill="s", plugin="q", mcp="c",
            region="us", kind="advisor",
        ),
    ]  # fmt: skip
    assert (used.finished, used.failed, used.output_bytes, rows.names[0].server) == (1, 1, 9, "w")


def test_what_is_charged_beside_tokens_is_a_part_of_the_cost():
    """Of a recorded one, which is the whole, never more than that; an unknown cost has no known part."""
    cases = (
        ({"cost_nano": 7, "extra_nano": 3}, (7, None, 3)),
        ({"cost_nano": 7, "extra_nano": 9}, (7, None, 7)),
        ({"extra_nano": 3, "provider": "nobody's"}, (None, None, None)),
        ({"extra_nano": 3, "provider": "anthropic", "model": "claude-opus-4-5"}, (None, 175_003, 3)),
    )
    for fields, costs in cases:
        [row] = rows_of(session("a", record(**fields))).responses
        assert (row.cost_nano, row.estimate_nano, row.extra_nano) == costs


def test_what_has_no_recorded_cost_is_priced():
    """By whoever scans, at the prices that it is given."""
    own = PriceBook.load({"m": {"input": 1, "output": 2}})
    scan = session("a", record(model="m"))
    assert rows_of(scan, prices=own).responses[0].estimate_nano == 10 * 1000 + 5 * 2000
    sent = pickle.loads(pickle.dumps(own))
    assert rows_of(scan, prices=sent) == rows_of(scan, prices=own)
    assert sent.fingerprint == own.fingerprint


def test_names_that_are_no_text_have_a_spelling():
    """Half a character cannot be stored; what stands for it can."""
    scan = rows_of(session("a\udcff", record(model="m\udcff"), tools=(call("k\udcff"),), project="/\udcff"))
    assert scan.sessions == [("native", "a\\udcff", "")]
    assert (scan.labels[0].model, scan.names[0].project) == ("m\\udcff", "/\\udcff")


def test_keys_are_numbers_that_all_copies_share():
    """The same in every log, process and machine of one source, others in another source."""
    copies = [rows_of(session(name, record(key="k", family="f"))).responses[0] for name in "ab"]
    assert (copies[0].family, copies[0].key) == (copies[1].family, copies[1].key)
    other = rows_of(session("a", record(key="k", family="f"), source="codex")).responses[0]
    assert copies[0].family != other.family
    alone = rows_of(session("a", record(key="f"))).responses[0]
    assert alone.family == alone.key == copies[0].family != copies[0].key


def test_a_response_without_a_key_has_no_copies():
    """It is known by its place alone."""
    [row] = rows_of(session("a", record())).responses
    assert (row.family, row.key) == (None, None)


def test_a_failed_response_has_no_latency_to_count():
    """What failed at once was not fast."""
    [row] = rows_of(session("a", record(latency_ms=50, failed=True))).responses
    assert (row.latency_ms, row.latency_bucket) == (50, None)


def test_calls_have_the_project_of_their_session_unless_they_say_so():
    """And their names once."""
    scan = rows_of(session("a", tools=(call("1"), call("2", project="/w/own"), call("3")), project="/w"))
    assert [row.name_id for row in scan.calls] == [1, 2, 1]
    assert [name.project for name in scan.names] == ["/w", "/w/own"]


def test_the_facts_are_kept_without_what_was_counted():
    """Of each session, in the order of the scan."""
    facts = [facts_of(one.facts) for one in rows_of(session("b", record()), session("a", record())).facts]
    assert [(one.records, one.session_id) for one in facts] == [((), "b"), ((), "a")]


def test_rows_of_a_large_log_are_made_as_they_are_inserted():
    """Its records, and its sessions, are decoded on each access."""
    records = tuple(record(key=f"k{number}", time_ns=NOON + number) for number in range(9))
    assert rows_of(session("a", *records), large=True) == rows_of(session("a", *records))


def test_numbers_beyond_64_bits_are_clamped():
    """And all other rows are inserted once."""
    rows = rows_of(session("a", record(), record(input=2**70), record()))
    assert [row.input for row in rows.responses] == [10, 2**63 - 1, 10]


@examples(200)
@given(st.text(st.characters(categories=("L", "N", "P", "S", "Z", "C")), max_size=20), st.binary(max_size=80))
def test_a_number_fits_where_it_is_kept(name, seed):
    """Any name, half characters too, is a number of 64 bits, and always the same one."""
    number = hash_name(name, seed)
    assert -(2**63) <= number < 2**63
    assert hash_name(name, seed) == number
