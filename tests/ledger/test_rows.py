"""Rows: what a log holds as tuples that can be sent and inserted, priced, with names once and keys as numbers."""

import pickle

from hypothesis import given
from hypothesis import strategies as st

from sessionlog.hashes import hash_name
from sessionlog.ledger.columns import Label
from sessionlog.ledger.rows import bucket_of, to_rows
from sessionlog.ledger.sessions import facts_of
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.protocol import LogScan, Resume
from sessionlog.sources.record import Problems, ToolUse
from tests.ledger.entries import NOON, record, session
from tests.profiles import examples

PRICES = PriceBook.load()


def rows_of(*sessions, **fields):
    """The rows of these sessions."""
    return to_rows(LogScan(sessions=sessions, **fields), PRICES)


def call(key, **fields):
    """A call of Bash at noon."""
    return ToolUse(key=key, time_ns=NOON, tool="Bash", **fields)


def test_names_are_kept_once():
    """However many responses have them in common."""
    scan = rows_of(session("a", record(), record()), session("b", record(), record(model="n")))
    [first, second] = scan.sessions
    assert [row.label_id for row in (*first.responses, *second.responses)] == [0, 0, 0, 1]
    assert [label.model for label in scan.labels] == ["m", "n"]


def test_a_response_is_a_row_of_its_table():
    """Without what the ledger's owner alone can know: its own numbers of the log and of the session."""
    [one] = rows_of(session("a", record(latency_ms=50, cost_nano=7), tools=(call("1"),))).sessions
    [row], [used] = one.responses, one.calls
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
    [response], [used] = rows.sessions[0].responses, rows.sessions[0].calls
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
    assert rows.labels == (
        Label(
            provider="p", model="m", response_model="n", project="/x", branch="b", version="v", agent="a",
            granularity="request", quality="partial", speed="fast", service_tier="flex", skill="s", plugin="q", mcp="c",
            region="us", kind="advisor",
        ),
    )  # fmt: skip
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
        [row] = rows_of(session("a", record(**fields))).sessions[0].responses
        assert (row.cost_nano, row.estimate_nano, row.extra_nano) == costs


def test_what_has_no_recorded_cost_is_priced():
    """By whoever scans, at the prices that it is given."""
    own = PriceBook.load({"m": {"input": 1, "output": 2}})
    scan = LogScan(sessions=(session("a", record(model="m")),))
    assert to_rows(scan, own).sessions[0].responses[0].estimate_nano == 10 * 1000 + 5 * 2000
    sent = pickle.loads(pickle.dumps(own))
    assert to_rows(scan, sent) == to_rows(scan, own)
    assert sent.fingerprint == own.fingerprint


def test_names_that_are_no_text_have_a_spelling():
    """Half a character cannot be stored; what stands for it can."""
    scan = rows_of(session("a\udcff", record(model="m\udcff"), tools=(call("k\udcff"),), project="/\udcff"))
    assert scan.sessions[0].name == ("native", "a\\udcff", "")
    assert (scan.labels[0].model, scan.names[0].project) == ("m\\udcff", "/\\udcff")


def test_keys_are_numbers_that_all_copies_share():
    """The same in every log, process and machine of one source, others in another source."""
    copies = [rows_of(session(name, record(key="k", family="f"))).sessions[0].responses[0] for name in "ab"]
    assert (copies[0].family, copies[0].key) == (copies[1].family, copies[1].key)
    other = rows_of(session("a", record(key="k", family="f"), source="codex")).sessions[0].responses[0]
    assert copies[0].family != other.family
    alone = rows_of(session("a", record(key="f"))).sessions[0].responses[0]
    assert alone.family == alone.key == copies[0].family != copies[0].key


def test_a_response_without_a_key_has_no_copies():
    """It is known by its place alone."""
    [row] = rows_of(session("a", record())).sessions[0].responses
    assert (row.family, row.key) == (None, None)


def test_a_failed_response_has_no_latency_to_count():
    """What failed at once was not fast."""
    [row] = rows_of(session("a", record(latency_ms=50, failed=True))).sessions[0].responses
    assert (row.latency_ms, row.latency_bucket) == (50, None)


def test_calls_have_the_project_of_their_session_unless_they_say_so():
    """And their names once."""
    scan = rows_of(session("a", tools=(call("1"), call("2", project="/w/own"), call("3")), project="/w"))
    assert [row.name_id for row in scan.sessions[0].calls] == [0, 1, 0]
    assert [name.project for name in scan.names] == ["/w", "/w/own"]


def test_the_facts_are_kept_without_what_was_counted():
    """And everything that belongs to the log."""
    resume, problems = Resume(offset=9, line=1), Problems(count=3)
    told = LogScan(
        sessions=(session("a", record()),), resume=resume, problems=problems, replaced_count=2, full_rescan=True
    )
    scan = to_rows(told, PRICES, failed=True)
    assert (scan.resume, scan.problems, scan.failed) == (resume, problems, True)
    assert (scan.replaced_count, scan.full_rescan) == (2, True)
    facts = facts_of(scan.sessions[0].facts)
    assert (facts.records, facts.session_id) == ((), "a")
    assert rows_of() == to_rows(LogScan(), PRICES)


def test_a_scan_can_be_sent():
    """Workers are other processes."""
    scan = rows_of(session("a", record(key="k"), tools=(call("1"),)))
    assert pickle.loads(pickle.dumps(scan)) == scan


@examples(200)
@given(st.text(st.characters(categories=("L", "N", "P", "S", "Z", "C")), max_size=20), st.binary(max_size=80))
def test_a_number_fits_where_it_is_kept(name, seed):
    """Any name, half characters too, is a number of 64 bits, and always the same one."""
    number = hash_name(name, seed)
    assert -(2**63) <= number < 2**63
    assert hash_name(name, seed) == number
