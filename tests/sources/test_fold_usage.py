"""Sums that an agent logs beside its responses: what each adds, and that a log scanned in parts gives what one scan gives."""

import os

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from sessionlog.events.tokens import TokenUsage
from sessionlog.ledger.book import Book
from sessionlog.pricing.book import PriceBook
from sessionlog.source_check import _dump
from sessionlog.sources.fold_usage import UsageFold
from sessionlog.sources.kit import json_lines, source
from sessionlog.sources.registry import load_source
from sessionlog.sources.steps import Prompt, Response, Session, Tokens, Totals
from tests.profiles import examples
from tests.sources.homes import build_home
from tests.turns import cases_by_turns

CLOCK = 1_794_304_800_000_000_000
PRICES = PriceBook.load()


class Row(Struct, omit_defaults=True):
    """A step: a prompt, a response or a sum; its second is the number of its line."""

    kind: str
    session: str = ""
    thread: str = ""
    key: str = ""
    used: tuple[int, int] = (0, 0)
    scope: str = ""
    requests: int = 0
    cost: int | None = None
    n: int = 0


class State(Struct):
    """Of the row before."""

    session: str = ""
    thread: str = ""


def steps(row, state):
    """What a row means."""
    time = CLOCK + row.n * 1_000_000_000
    if (row.session, row.thread) != (state.session, state.thread):
        state.session, state.thread = row.session, row.thread
        yield Session(id=row.session or "log", thread=row.thread)
    used = Tokens(TokenUsage(input=row.used[0], output=row.used[1]))
    match row.kind:
        case "prompt":
            yield Prompt(time, "go")
        case "response":
            yield Response(time=time, key=row.key, tokens=used, model="m", cost_nano=row.cost)
        case "inner":
            inside = {"kind": "advisor", "parent": "a", "failed": not sum(row.used)}
            yield Response(time=time, key=row.key, tokens=used, model="wise", **inside)
        case "sum":
            known = {"model": "m", "scope": row.scope, "requests": row.requests, "cost_nano": row.cost}
            yield Totals(time=time, tokens=used, **known)


SOURCE = source(
    id="both", title="Responses and sums", places=(), logs="*.jsonl", rows=json_lines(Row), steps=steps,
    state_type=State, is_row=lambda row: "kind" in row, has_totals=True,
)  # fmt: skip


def prompt(**row):
    return Row("prompt", **row)


def response(key, *used, **row):
    return Row("response", key=key, used=used, **row)


def total(*used, **row):
    return Row("sum", used=used, **row)


def lines_of(rows):
    """A log of these rows, by lines."""
    return [msgspec.json.encode(msgspec.structs.replace(row, n=n)) + b"\n" for n, row in enumerate(rows)]


def scans(source, path, lines, cuts):
    """The scans of a log that grows: one each time that so many lines are there, and one of all."""
    resume = None
    for count in (*sorted(cuts), len(lines)):
        with open(path, "wb") as file:
            file.writelines(lines[:count])
        scan = source.scan(str(path), resume)
        if scan.resume is not None or count >= len(lines):  # else the next scan reads it anew
            yield scan
            resume = scan.resume


def dump(scans):
    """What the ledger has of some scans of a log."""
    book = Book(PRICES)
    for scan in scans:
        book.add_scan(scan)
    return _dump(book)


def records(folder, *rows, cuts=()):
    """(input, output, requests, cost) of each record of a log."""
    found = scans(SOURCE, folder / "log.jsonl", lines_of(rows), cuts)
    return [
        (one.usage.input, one.usage.output, one.requests, one.cost_nano)
        for scan in found
        for session in scan.sessions
        for one in session.records
    ]


def test_an_open_response_of_an_earlier_scan_is_a_part_of_the_sum(tmp_path):
    """It has been returned, but its state was that of a response that may get more rows."""
    rows = (prompt(), response("a", 400, 40), total(1000, 100))
    assert records(tmp_path, *rows, cuts={2}) == [(400, 40, 1, None), (600, 60, 0, None)]


def test_a_sum_that_its_parts_cover_is_no_record(tmp_path):
    """Neither its requests nor its cost count again."""
    parts = total(60, 6, scope="a", requests=4, cost=50), total(40, 4, scope="b", requests=2, cost=30)
    assert records(tmp_path, prompt(), *parts, total(100, 10, requests=6, cost=80)) == [(60, 6, 4, 50), (40, 4, 2, 30)]


def test_what_parts_do_not_cover_is_a_record_of_its_own(tmp_path):
    """Of tokens, requests and cost, only what is beyond the parts."""
    rows = prompt(), total(60, 6, scope="a", requests=4, cost=50), total(100, 10, requests=6, cost=80)
    assert records(tmp_path, *rows) == [(60, 6, 4, 50), (40, 4, 2, 30)]


def test_a_remainder_without_tokens_and_cost_is_no_record(tmp_path):
    """Its requests may be counted otherwise; a first sum of requests alone is one."""
    assert records(tmp_path, prompt(), total(60, 6, scope="a", requests=1), total(60, 6, requests=2)) == [
        (60, 6, 1, None)
    ]
    assert records(tmp_path, prompt(), total(0, 0, requests=2)) == [(0, 0, 2, None)]


def test_a_sum_that_grows_counts_its_requests_once(tmp_path):
    """Each time with all that was before."""
    rows = prompt(), total(10, 1, requests=1), total(30, 3, requests=3)
    assert records(tmp_path, *rows) == records(tmp_path, *rows, cuts={2}) == [(10, 1, 1, None), (20, 2, 2, None)]


def test_the_session_that_goes_on_is_kept_however_many_came_after_it(tmp_path):
    """Also one with an open response: the state holds both, besides the last sessions."""
    others = [row for n in range(20) for row in (prompt(session=f"s{n}"), response(f"r{n}", 1, 1, session=f"s{n}"))]
    rows = [
        prompt(session="a"),
        response("k", 9, 1, session="a"),
        *others,
        prompt(session="a"),
        total(90, 10, session="a"),
    ]
    log, lines = tmp_path / "log.jsonl", lines_of(rows)
    assert dump(scans(SOURCE, log, lines, {len(rows) - 1})) == dump(scans(SOURCE, log, lines, ()))


def test_a_response_inside_another_one_is_a_record_of_its_own(tmp_path):
    """It takes neither the other's rows nor its time, and the session goes on with the other's model and status."""
    inner, rows = Row("inner", key="a#1", used=(5, 2)), [prompt(), response("a", 10, 1)]
    [plain] = next(iter(scans(SOURCE, tmp_path / "log.jsonl", lines_of([*rows, response("a", 10, 3)]), ()))).sessions
    mixed = [*rows, inner, Row("inner", key="a#2"), response("a", 10, 3), inner, response("b", 1, 1)]
    [scan] = scans(SOURCE, tmp_path / "log.jsonl", lines_of(mixed), ())
    outer, advice, failed, after = scan.sessions[0].records
    assert outer.usage == plain.records[0].usage
    assert (outer.time_ns, outer.model, outer.kind) == (plain.records[0].time_ns, "m", "")
    assert (advice.model, advice.kind, advice.parent, advice.usage.total) == ("wise", "advisor", "a", 7)
    assert (advice.active_ms, advice.latency_ms, failed.failed) == (0, None, True)
    assert (after.model, scan.sessions[0].status) == ("m", None)
    assert dump(scans(SOURCE, tmp_path / "log.jsonl", lines_of(mixed), {3, 5})) == dump([scan])


def test_what_a_response_has_beside_tokens_counts_once(tmp_path):
    """Its rows repeat the number of searches; the greatest holds."""
    fold = UsageFold("both", "log", "log", place=lambda: ("", 0, 0))
    for searches, extra, region in ((1, None, ""), (3, 5, "us"), (2, 4, "")):
        used = Tokens(TokenUsage(input=1))
        step = Response(CLOCK, key="a", tokens=used, searches=searches, extra_nano=extra, region=region)
        fold.take[Response](step)
    [session] = fold.finish(lambda one, _: one)
    [record] = session.records
    assert (record.searches, record.extra_nano, record.region) == (3, 5, "us")


THREADS, SCOPES = st.sampled_from(["", "t"]), st.sampled_from(["", "m", "n"])
COUNTS, COSTS = st.tuples(st.integers(0, 50), st.integers(0, 50)), st.none() | st.integers(0, 99)
SESSIONS = st.sampled_from(["", "s"])
ROWS = st.lists(
    st.builds(prompt, session=SESSIONS, thread=THREADS)
    | st.builds(Row, st.just("response"), SESSIONS, THREADS, st.sampled_from("abcdef"), COUNTS, cost=COSTS)
    | st.builds(Row, st.just("inner"), SESSIONS, THREADS, st.sampled_from("xyz"), COUNTS)
    | st.builds(Row, st.just("sum"), SESSIONS, THREADS, st.just(""), COUNTS, SCOPES, st.integers(0, 9), COSTS),
    min_size=2,
    max_size=16,
)


@examples(300)
@given(rows=ROWS, cuts=st.sets(st.integers(1, 15), min_size=1))
def test_a_log_that_is_scanned_in_parts_gives_what_one_scan_gives(growing, rows, cuts):
    """Whatever responses and sums it has, and wherever it is cut."""
    log, lines = growing / "log.jsonl", lines_of(rows)
    cuts = {cut for cut in cuts if cut < len(rows)}
    assert dump(scans(SOURCE, log, lines, cuts)) == dump(scans(SOURCE, log, lines, ()))


@pytest.mark.parametrize("case", cases_by_turns(4, turn=3))
def test_every_case_gives_the_same_wherever_it_is_cut(case, tmp_path):
    """At the end of each line, and at all of them."""
    agent = load_source(case.partition("/")[0])
    for log in agent.list_logs(str(build_home(case, tmp_path))):
        if os.path.isdir(log) or log.endswith((".gz", ".zst")) or agent.scan(log, None).resume is None:
            continue
        with open(log, "rb") as file:
            lines = file.readlines()
        whole = dump(scans(agent, log, lines, ()))
        assert dump(scans(agent, log, lines, range(1, len(lines)))) == whole
        for cut in range(1, len(lines)):
            assert dump(scans(agent, log, lines, {cut})) == whole, f"cut after line {cut} of {log}"
