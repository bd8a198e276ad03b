"""The command line: exit codes, and every fact of the original's CSV, table and routing texts in ours."""

import re

import pytest

from sessionlog.render.routing import bucket_words
from tests.conformance.command import run
from tests.conformance.data import cases, expected_text, folder
from tests.conformance.facts import expected_facts, original_facts, same
from tests.conformance.numbers import overlap
from tests.conformance.texts import (
    plain_name,
    read_csv,
    read_our_table,
    read_routing_csv,
    read_routing_text,
    read_routing_view,
    read_table,
)

COLUMNS = {
    "sessions": "SESSIONS", "input_tokens": "INPUT", "output_tokens": "OUTPUT", "known_cost_usd": "COST",
    "cache_hit_rate": "HIT", "success_rate": "OK", "cost_per_success": "PER OK",
}  # fmt: skip
"""Fact → column of our table."""

ELSEWHERE = {
    "total_tokens": ("TOTAL", "the sum of four columns; in CSV and JSON"),
    "unknown_cost_sessions": ("UNKNOWN", "`+` or `–` for a cost, and a note that counts them"),
    "input_tokens_per_second": ("IN tok/s", "in CSV and JSON"),
    "output_tokens_per_second": ("OUT tok/s", "in CSV and JSON; the table has the speed of generation"),
}
"""Fact → its column in the original's table, which ours has not, and where ours says it."""


def report(capsys, command, case, *options):
    """Run a report for one case."""
    since = ("--since", case["since"]) if case["since"] else ()
    return run(capsys, command, str(folder() / case["dir"]), *since, "--now", case["now"], *options)


def is_refused(name, done) -> bool:
    """The command found no folder, which the table of differences must know."""
    if done.code:
        expected = expected_facts(f"command {name}", {"command": {"exit": 0}})
        assert done.code == expected["command"]["exit"]
    return done.code != 0


def compare(name, case, theirs, ours, fields) -> None:
    """Each text of ours can stand for the value it must say; where nothing of a row differs, for their texts as well."""
    original = original_facts(case)
    expected = expected_facts(f"usage {name}", original)
    places = {plain_name(place): place for place in expected if "|" in place or place == "total"}
    assert ours.keys() == places.keys()
    assert theirs.keys() == {plain_name(place) for place in original if "|" in place or place == "total"}
    for key, place in places.items():
        for field in fields:
            must, text = expected[place][field], ours[key][field]
            assert overlap(text, must), f"{place} {field}: {text!r} is not {must}"
            if same(original.get(place), expected[place]):
                assert overlap(text, theirs[key][field]), f"{place} {field}: {text!r} is not {theirs[key][field]!r}"


@pytest.mark.parametrize(("name", "case"), cases("usage"))
def test_exit_codes(name, case, outside, capsys):
    """0 is fine, 2 wrong usage, 3 unreadable; damage is no failure."""
    expected = expected_facts(f"command {name}", {"command": {"exit": case["exit"]}})
    assert report(capsys, "usage", case, "--json").code == expected["command"]["exit"]


@pytest.mark.parametrize(("name", "case"), cases("usage", having="csv_file"))
def test_csv(name, case, outside, capsys):
    """Our CSV has each value of the original's, and its totals last."""
    done = report(capsys, "usage", case, "--csv")
    if is_refused(name, done):
        return
    theirs, ours = read_csv(expected_text(case["csv_file"])), read_csv(done.out)
    assert list(ours)[-1] == "total"
    compare(name, case, theirs, ours, theirs["total"].keys())


@pytest.mark.parametrize(("name", "case"), cases("usage", having="table_file"))
def test_table(name, case, outside, capsys):
    """Our table has each value of the original's, as exactly as it shows numbers."""
    done = report(capsys, "usage", case, "--wide")
    if is_refused(name, done):
        return
    theirs, table = read_table(expected_text(case["table_file"])), read_our_table(done.out)
    assert theirs["total"].keys() == COLUMNS.keys() | ELSEWHERE.keys()
    if not table:
        assert theirs.keys() == {"total"}
        assert done.out.splitlines()[0].endswith(" · 0 sessions")
        return
    assert not any(title in table["total"] for title, _ in ELSEWHERE.values())
    ours = {place: {field: row[title] for field, title in COLUMNS.items()} for place, row in table.items()}
    compare(name, case, theirs, ours, COLUMNS)
    expected = expected_facts(f"usage {name}", original_facts(case))
    unknown = expected["total"]["unknown_cost_sessions"]
    note = re.search(r"^(?:\+ )?(\d+) sessions? ha(?:s|ve) parts without (?:a price|tokens)", done.out, re.MULTILINE)
    assert (int(note[1]) if note else 0) == unknown
    for place in expected:
        if "|" in place:
            partly = expected[place]["unknown_cost_sessions"] > 0 and expected[place]["known_cost_usd"] is not None
            assert table[plain_name(place)]["COST"].endswith("+") == partly


@pytest.mark.parametrize(("name", "case"), cases("usage", having="routing_text_file"))
def test_routing_text(name, case, outside, capsys):
    """Our routing view and CSV have each figure of the original's."""
    done = report(capsys, "routing-quality", case)
    if is_refused(name, done):
        return
    original = original_facts(case)
    expected = expected_facts(f"usage {name}", original)
    theirs, view = read_routing_text(expected_text(case["routing_text_file"])), read_routing_view(done.out)
    table = read_routing_csv(report(capsys, "routing-quality", case, "--csv").out)
    assert theirs.keys() == {place for place in original if place.startswith(("tokens=", "routing"))}
    assert table.keys() == {place for place in expected if place.startswith("tokens=")}
    ours = {"routing": view.pop("routing")}
    for place, row in table.items():
        bucket, axis, agrees = place.rsplit(" ", 2)
        ours[place] = row | view.pop((bucket_words(bucket), axis, agrees))
    assert view == {}
    for place, row in ours.items():
        for field, text in row.items():
            must = expected[place][field]
            assert overlap(text, must), f"{place} {field}: {text!r} is not {must}"
            if same(original.get(place), expected[place]):
                assert overlap(text, theirs[place][field]), f"{place} {field}: {text!r} is not {theirs[place][field]!r}"
