"""A status says what the issue asked for: its example, its relations, and what its program makes of odd numbers."""

import json

import pytest

from sessionlog.analytics.status.answer import Status, choose_session
from sessionlog.analytics.status.document import document_of
from sessionlog.analytics.status.reader import session_status
from sessionlog.sources.protocol import LogScan
from sessionlog.sources.record import Limit
from tests.conformance.data import VARIABLE, document, is_here
from tests.conformance.status_differences import NORMALIZE, REASONS, RELATIONS, TOTALS
from tests.ledger.entries import NOON, SECOND, book_of, record, session

COUNTS = {"normalize": 12, "totals": 3, "issue_relations": 3}
HOUR = 3600 * SECOND


def cases(kind):
    """A test for every case, or one skipped test that says how many there are."""
    if not is_here():
        mark = pytest.mark.skip(reason=f"{VARIABLE} is not set: {COUNTS[kind]} {kind} cases not compared")
        return [pytest.param(0, {}, marks=mark, id=f"{COUNTS[kind]}-{kind}-cases")]
    return [
        pytest.param(number, case, id=str(number)) for number, case in enumerate(document("status_cases.json")[kind])
    ]


@pytest.fixture
def used(tmp_path, monkeypatch):
    """What a session of OpenClaw used whose answers had these usages."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    def ask(usages):
        rows = [
            {"type": "session", "id": "s1", "cwd": "/src", "timestamp": "2026-11-20T12:00:00Z"},
            {"type": "message", "id": "u", "timestamp": "2026-11-20T12:00:01Z",
             "message": {"role": "user", "content": "go on"}},
            *(
                {"type": "message", "id": f"m{number}", "timestamp": f"2026-11-20T12:{number // 60:02}:{number % 60:02}Z",
                 "message": {"role": "assistant", "provider": "nobody", "model": "no-such", "usage": usage,
                             "content": [], "stopReason": "stop"}}
                for number, usage in enumerate(usages, 2)
            ),
        ]  # fmt: skip
        path = tmp_path / "agents" / "main" / "sessions" / "s1.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        status = session_status(path=path, ledger=tmp_path / "ledger.sqlite")
        assert status.session["source"] == "openclaw"
        return status.usage["session"]

    return ask


@pytest.mark.parametrize(("number", "case"), cases("normalize"))
def test_one_answer_is_read_as_the_original_reads_it(used, number, case):
    """Or differs by a rule, exactly as the table says."""
    theirs = case["normalized"] or {}
    ours = {name: value for name, value in used([case["raw"]]).items() if name in {"input", "output", *theirs}}
    ours |= {"total": used([case["raw"]])["totalTokens"]} if "total" in theirs else {}
    _compare(number, {"input": 0, "output": 0, **theirs}, ours, NORMALIZE)


@pytest.mark.parametrize(("number", "case"), cases("totals"))
def test_sums_are_the_originals(used, number, case):
    """Tokens, cost, and whether a part of it has none."""
    ours = used(case["usages"])
    theirs = {name: value for name, value in case["expect"].items() if name in ours} | {
        "cost": case["expect"]["totalCost"]
    }
    _compare(number, theirs, ours, TOTALS)
    if ours["cost"] is not None:
        assert ours["costIsPartial"] == (case["expect"]["missingCostEntries"] > 0)


def _compare(number, theirs, ours, table):
    changes = table[number][1] if number in table else {}
    assert {name: ours[name] for name in theirs} == theirs | changes
    assert all(theirs[name] != value for name, value in changes.items()), "a difference that is none"


def example_book(**tokens):
    """A session of Codex as long as the example's, whose windows are as full."""
    whole, last = {"input": 4136, "output": 157791, "cost": 94.49}, {"input": 8, "output": 961, "cost": 0.078}
    rest = {name: whole[name] - last[name] for name in whole}
    made = [record(time_ns=NOON, input=rest["input"], output=rest["output"], cost_nano=94_412_000_000, **tokens)]
    made.append(record(time_ns=NOON + 60 * SECOND, input=8, output=961, cost_nano=78_000_000))
    one = session("s1", *made, source="codex", turns=540, last_turn_ns=NOON + 30 * SECOND)
    book = book_of()
    windows = (("primary", 72.0, 300, NOON + HOUR), ("secondary", 97.0, 10080, NOON + 24 * HOUR))
    limits = tuple(
        Limit(time_ns=NOON, name=name, used_percent=used, window_minutes=minutes, resets_ns=resets_ns)
        for name, used, minutes, resets_ns in windows
    )
    book.add_scan(LogScan(sessions=(one,), limits=limits))
    return book


def example_status(**tokens):
    """Its status."""
    book, now_ns = example_book(**tokens), NOON + 120 * SECOND
    return Status(document_of(book.query, choose_session(book.query, None, now_ns), now_ns=now_ns))


@pytest.mark.skipif(not is_here(), reason=f"{VARIABLE} is not set: the issue's example is not compared")
def test_the_example_is_part_of_ours():
    """Every value of it stands in the same place."""

    def contains(ours, theirs):
        if isinstance(theirs, dict):
            return all(name in ours and contains(ours[name], value) for name, value in theirs.items())
        return ours == pytest.approx(theirs, rel=1e-9)

    assert contains(example_status().to_dict(), document("status_cases.json")["issue_example"])


def test_the_cache_is_in_the_total():
    """A named difference: all classes add up."""
    used = example_status(cache_read=1000, cache_write=10).usage["session"]
    assert used["totalTokens"] == used["input"] + used["output"] + 1010


def test_budgets_say_what_they_are():
    """A named difference: what the example leaves to be guessed is told."""
    hourly = example_status().usage["budgets"]["hourly"]
    assert hourly["unit"] == "percent"
    assert hourly["windowSeconds"] == 5 * 3600
    assert hourly["resetsAt"] == "2026-11-20T13:00:00.000000Z"
    assert hourly["source"].startswith("codex")


def test_requests_are_no_turns():
    """A named difference: what the example calls a turn is the answer of a model."""
    used = example_status().usage["session"]
    assert (used["turns"], used["requests"]) == (540, 2)


@pytest.mark.skipif(not is_here(), reason=f"{VARIABLE} is not set: 3 relations not compared")
def test_every_relation_holds_or_is_a_named_difference():
    """Percent are those of the limit, and of what is used, not of what is left."""
    assert list(RELATIONS) == document("status_cases.json")["issue_relations"]
    for entry in example_status().usage["budgets"].values():
        assert entry["percent"] == entry["used"] / entry["limit"] * 100
        assert entry["limit"] == 100


def test_every_rule_has_a_reason_and_a_case():
    """A rule for nothing is no rule."""
    rules = {rule for rule, _ in (*NORMALIZE.values(), *TOTALS.values())} | {*RELATIONS.values()} - {None}
    shown_here = {"a turn is a user's", "budgets say what they are"}
    assert rules | shown_here == REASONS.keys()


@pytest.mark.skipif(not is_here(), reason=f"{VARIABLE} is not set: {sum(COUNTS.values())} cases not counted")
def test_every_case_is_compared():
    """There are no others in the data."""
    found = document("status_cases.json")
    assert {kind: len(found[kind]) for kind in COUNTS} == COUNTS
    assert found.keys() - COUNTS.keys() == {"meta", "issue_example"}
