"""Tools: every call once, at its own time; open calls are neither good nor bad; shares are of the selection."""

import json
from datetime import datetime
from platform import node

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sessionlog.analytics.columns import names_of
from sessionlog.analytics.tool_row import COLUMNS, ToolReport, ToolRow
from sessionlog.analytics.tools import KEYS, aggregate_tools
from sessionlog.errors import InvalidQuery, InvalidWindow
from tests.analytics.week import NOW, check_golden
from tests.analytics.workday import call, day_of_calls, fold_calls, open_call
from tests.ledger.entries import NOON, PRICES, SECOND, record, session
from tests.profiles import examples
from tests.sources.logs import answered, ended, event, start, write_log

NAMES = names_of(COLUMNS)

LAW = examples(60)


def tool_call(clock="10:00:02", **data):
    return event("tool.call", clock, data)


def tools(paths, **options):
    return aggregate_tools(paths, **({"prices": PRICES, "now": NOW} | options))


def counts(report, *names):
    return {tuple(row.keys.values()): tuple(getattr(row, name) for name in names) for row in report.rows}


# --- what a row says


def test_the_days_document():
    """`sessionlog.tools/1`; floats to nine digits, which every machine agrees on."""
    text = json.dumps(fold_calls(*day_of_calls()).to_dict(), allow_nan=False)
    document = json.loads(text, parse_float=lambda number: float(f"{float(number):.9g}"))
    check_golden("tools.json", json.dumps(document, indent=2) + "\n")


def test_open_calls_are_counted_apart():
    """They have no outcome: the rate and the mean are of what finished."""
    one = session("s", tools=(call(1), call(2, failed=True), open_call(3, failed=True), open_call(4, duration_ms=9.0)))
    [row] = fold_calls(one).rows
    assert (row.calls, row.open_calls, row.errors, row.error_rate) == (4, 2, 1, 0.5)
    assert (row.duration_ms, row.output_bytes, row.output_bytes_mean) == (2000.0, 200, 100.0)


def test_nothing_finished_has_no_rates():
    """An empty denominator is None, not 0."""
    [row] = fold_calls(session("s", tools=(open_call(1),))).rows
    assert (row.error_rate, row.output_bytes_mean, row.context_share) == (None, None, None)
    assert (row.duration_ms, row.duration_p50_ms, row.duration_p95_ms) == (None, None, None)


def test_durations_are_those_of_the_row():
    """Percentiles of the calls that have one; a call that takes no measurable time has taken 0 ms."""
    many = [call(f"q{n}", "quick", duration_ms=10.0) for n in range(19)]
    one = session(
        "s", tools=(*many, call("slow", "quick", duration_ms=5000.0), call("none", "quick", duration_ms=None))
    )
    other = session("o", tools=(call("zero", "zero", duration_ms=0.0),))
    report = fold_calls(one, other, by=("tool",))
    rows = {row.tool: row for row in report.rows}
    assert (rows["quick"].duration_p50_ms, rows["quick"].duration_p95_ms) == pytest.approx((10, 10), rel=0.02)
    assert (rows["quick"].duration_ms, rows["zero"].duration_ms, rows["zero"].duration_p50_ms) == (5190.0, 0.0, 0.0)
    assert report.totals.duration_ms == 5190.0


def test_shares_are_of_all_output_in_the_selection():
    """They add up to one; a filter makes its selection the whole."""
    one = session("s", tools=(call(1, "a", output_bytes=300), call(2, "b", output_bytes=100)))
    assert counts(fold_calls(one, by=("tool",)), "context_share") == {("a",): (0.75,), ("b",): (0.25,)}
    assert fold_calls(one).totals.context_share == 1.0
    [alone] = fold_calls(one, filters={"tool": ("b",)}).rows
    assert alone.context_share == 1.0


def test_an_agents_own_tools_have_a_server_all_the_same():
    """`built-in`, as a key and for filters; a tool without a name is unknown."""
    one = session("s", tools=(call(1), call(2, server="github"), call(3, "")))
    assert counts(fold_calls(one), "calls") == {
        ("built-in", "bash"): (1,),
        ("built-in", "unknown"): (1,),
        ("github", "bash"): (1,),
    }
    assert fold_calls(one, filters={"server": ("built-*",)}).totals.calls == 2


@pytest.mark.parametrize(
    "by", [(), ("tool",), ("server",), ("agent", "session"), ("day", "hour"), ("status", "project")]
)
def test_every_grouping_has_the_same_totals(by):
    """What rows are does not change what was called."""
    report = fold_calls(*day_of_calls(), by=by)
    assert report.totals == fold_calls(*day_of_calls()).totals
    for name in ("calls", "open_calls", "errors", "output_bytes"):
        assert sum(getattr(row, name) for row in report.rows) == getattr(report.totals, name)
    assert sum(row.duration_us or 0 for row in report.rows) == report.totals.duration_us


@pytest.mark.parametrize("key", KEYS)
def test_every_key_groups(key):
    """Values are the names of the call, of its session or of its time."""
    named = {
        "server": {"built-in", "github"}, "tool": {"bash", "find"}, "agent": {"main", "explorer"},
        "project": {"/a", "/b"}, "source": {"native", "codex"}, "session": {"one", "two"}, "day": {"2026-11-20"},
        "hour": {"2026-11-20T12:00+00:00"}, "week": {"2026-W47"}, "month": {"2026-11"}, "status": {"success", "error"},
        "machine": {node() or "unknown"},
    }  # fmt: skip
    one = session("one", tools=(call(1),), project="/a")
    two = session("two", tools=(call(2, "find", server="github", agent="explorer"),),
                  project="/b", source="codex", status="error")  # fmt: skip
    assert {row.keys[key] for row in fold_calls(one, two, by=(key,)).rows} == named[key]


def test_the_project_of_a_call_may_be_another_than_its_sessions():
    """An agent that changes its folder works where the call was made."""
    one = session("s", tools=(call(1), call(2, project="/b")), project="/a")
    assert counts(fold_calls(one, by=("project",)), "calls") == {("/a",): (1,), ("/b",): (1,)}


def test_worktrees_count_as_their_project():
    """On demand."""
    one = session("s", tools=(call(1),), project="/src/shop/.worktrees/fix")
    assert counts(fold_calls(one, by=("project",), merge_worktrees=True), "calls") == {("/src/shop",): (1,)}


# --- which calls


def test_a_call_has_its_own_time():
    """A window takes its part of a session; a call without a time is in all time only."""
    one = session("s", tools=(call(1), call(2, time_ns=NOON + SECOND), call(3, time_ns=None)))
    totals = [fold_calls(one, start_ns=a, end_ns=b).totals.calls for a, b in
              ((None, None), (NOON, NOON + 1), (NOON + 1, None), (0, NOON))]  # fmt: skip
    assert totals == [3, 1, 1, 0]
    assert counts(fold_calls(one, by=("day",)), "calls") == {("2026-11-20",): (2,), ("unknown",): (1,)}


@pytest.mark.parametrize(
    ("filters", "calls"),
    [
        ({"tool": ("READ",)}, 12),
        ({"tool": "read"}, 12),
        ({"tool": ("read", "sleep")}, 13),
        ({"server": ("git*",)}, 3),
        ({"server": ("git*",), "tool": ("search*",)}, 2),
        ({"project": ("*/site",)}, 6),
        ({"status": ("unfinished", "running")}, 6),
        ({"source": ("nat*",)}, 26),
        ({"source": ("codex",)}, 0),
        ({"tool": ()}, 26),
    ],
)
def test_filters_choose_calls(filters, calls):
    """Globs whatever the case; of several patterns one must fit, of several filters all."""
    assert fold_calls(*day_of_calls(), filters=filters).totals.calls == calls


def test_a_call_in_a_session_without_usage_counts():
    """It was made, whatever the session's start says."""
    assert fold_calls(session("s", tools=(call(1),), counted=False)).totals.calls == 1


def test_tool_calls_of_native_logs(tmp_path):
    """From the log to the row, MCP names split."""
    write_log(
        tmp_path / "s.jsonl",
        start(work_dir="/src"),
        answered(usage={"input": 1}),
        tool_call(tool="bash", output="é", duration_ms=1500),
        tool_call("10:00:04", tool="mcp__github__search", output=[{"text": "abc"}], error="no network"),
        ended(),
    )
    report = tools(tmp_path)
    assert counts(report, "calls", "errors", "output_bytes", "duration_ms") == {
        ("built-in", "bash"): (1, 0, 2, 1500.0),
        ("github", "search"): (1, 1, 3, None),
    }
    assert tools(tmp_path, window="2026-11-20T10:00:03Z..").totals.calls == 1


def test_a_report_says_what_it_skipped(tmp_path):
    """As for usage; a log without tool calls is no error."""
    write_log(tmp_path / "s.jsonl", start(), b"garbage\n", ended())
    report = tools(tmp_path)
    assert (report.rows, report.problem_count, report.totals.calls) == ((), 1, 0)
    assert report.to_dict()["problems"]["count"] == 1


def test_sums_beyond_64_bits_saturate():
    """A hostile log cannot end a report."""
    huge = [call(n, duration_ms=1e300, output_bytes=2**62) for n in range(4)]
    totals = fold_calls(session("s", tools=tuple(huge))).totals
    assert (totals.calls, totals.output_bytes, totals.duration_us) == (4, 2**63 - 1, 2**63 - 1)
    json.dumps(totals.to_dict(), allow_nan=False)


# --- order, and wrong questions


@pytest.fixture
def folder(tmp_path):
    """Three calls of b, two of a and two of c."""
    calls = [
        tool_call(tool=name, duration_ms=ms, output="x" * ms)
        for name, ms in zip("bbbaacc", [1, 1, 1, 9, 9, 2, 3], strict=True)
    ]
    write_log(tmp_path / "s.jsonl", start(), answered(), *calls, ended())
    return tmp_path


@pytest.mark.parametrize(
    ("sort", "order"),
    [(None, "bac"), ("calls", "bac"), ("-calls", "acb"), ("tool", "abc"), ("-tool", "cba"), ("output_bytes", "acb"),
     ("error_rate", "abc")],
)  # fmt: skip
def test_most_calls_come_first(folder, sort, order):
    """Another column or key on demand; equal rows keep the order of their keys."""
    assert "".join(row.tool for row in tools(folder, sort=sort).rows) == order


@pytest.mark.parametrize("name", NAMES)
def test_every_column_can_be_sorted_by(folder, name):
    """Largest first, unknown values last."""
    values = [getattr(row, name) for row in tools(folder, sort=name).rows]
    assert values == sorted(values, key=lambda value: -1 if value is None else value, reverse=True)


@pytest.mark.parametrize(("limit", "kept", "hidden"), [(None, 3, 0), (1, 1, 2), (0, 0, 3), (-1, 0, 3)])
def test_a_limit_hides_rows_and_says_so(folder, limit, kept, hidden):
    """The totals are over all."""
    report = tools(folder, limit=limit)
    assert (len(report.rows), report.hidden_rows, report.totals.calls) == (kept, hidden, 7)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"window": "sometime"}, InvalidWindow),
        ({"tz": "Mars/Olympus"}, InvalidWindow),
        ({"now": datetime(2026, 11, 21)}, InvalidWindow),
        ({"by": ["model"]}, InvalidQuery),
        ({"by": ["tool", "tool"]}, InvalidQuery),
        ({"sort": "colour"}, InvalidQuery),
        ({"sort": "day"}, InvalidQuery),
        ({"filters": {"model": ["x"]}}, InvalidQuery),
    ],
)
def test_wrong_calls_are_refused_before_anything_is_read(folder, options, error):
    """Hours of scanning must not end in a typing error."""
    steps = []
    with pytest.raises(error):
        tools(folder, progress=lambda *step: steps.append(step), **options)
    assert steps == []


def test_where_nothing_is_the_report_is_empty(tmp_path):
    """No rows, zero totals, and a document all the same."""
    report = tools(tmp_path / "nothing")
    assert report == ToolReport(window=None, group_by=("server", "tool"), priced_from=report.priced_from)
    assert json.loads(json.dumps(report.to_dict()))["totals"]["error_rate"] is None


# --- laws


CALLS = st.builds(
    call,
    st.integers(0, 10**9),
    st.sampled_from(["bash", "read", ""]),
    server=st.sampled_from(["", "github"]),
    time_ns=st.none() | st.integers(NOON - 5, NOON + 5),
    finished=st.booleans(),
    failed=st.booleans(),
    duration_ms=st.none() | st.floats(0, 1e9),
    output_bytes=st.integers(0, 10**6),
)
SESSIONS = st.lists(st.lists(CALLS, max_size=5), max_size=4)
SUMMED = ("calls", "open_calls", "errors", "duration_us", "output_bytes")


def sessions_of(lists):
    """Sessions with these calls, each under a key of its own."""
    return [
        session(
            f"s{number}",
            record(),
            tools=tuple(replace(one, key=f"{number}-{index}") for index, one in enumerate(calls)),
        )
        for number, calls in enumerate(lists)
    ]


def naive(calls, key):
    """Group → sums, the slow and obvious way."""
    rows = {}
    for one in calls:
        row = rows.setdefault(key(one), dict.fromkeys(SUMMED, 0) | {"duration_us": None})
        row["calls"] += 1
        row["open_calls"] += not one.finished
        row["errors"] += one.finished and one.failed
        row["output_bytes"] += one.output_bytes
        if one.finished and one.duration_ms is not None:
            whole = int(one.duration_ms * 1000 + 0.5)
            row["duration_us"] = (row["duration_us"] or 0) + whole
    return rows


def summed(row):
    return {name: getattr(row, name) for name in SUMMED}


@LAW
@given(SESSIONS)
def test_a_report_equals_a_naive_loop_over_the_calls(lists):
    """SQL and a loop agree on every row and on the totals, and rows add up."""
    calls = [one for calls in lists for one in calls]
    report = fold_calls(*sessions_of(lists))
    rows = {(row.server, row.tool): summed(row) for row in report.rows}
    assert rows == naive(calls, lambda one: (one.server or "built-in", one.tool or "unknown"))
    assert summed(report.totals) == naive(calls, lambda _: ()).get((), summed(ToolRow(keys={})))
    assert sum(row.context_share or 0 for row in report.rows) == pytest.approx(report.totals.context_share or 0)


@LAW
@given(SESSIONS, st.integers(NOON - 6, NOON + 6))
def test_neighbouring_windows_tile(lists, edge):
    """What lies before an instant and what lies after it are all that has a time."""
    timed = sessions_of([[one for one in calls if one.time_ns is not None] for calls in lists])
    whole, before, after = (
        fold_calls(*timed, start_ns=a, end_ns=b).totals for a, b in ((0, None), (None, edge), (edge, None))
    )
    for name in SUMMED:
        assert (getattr(before, name) or 0) + (getattr(after, name) or 0) == (getattr(whole, name) or 0)


@LAW
@given(SESSIONS, st.randoms(use_true_random=False))
def test_the_order_of_sessions_does_not_matter(lists, random):
    """Any order of logs gives one report."""
    sessions = sessions_of(lists)
    shuffled = random.sample(sessions, len(sessions))
    assert fold_calls(*shuffled).to_dict() == fold_calls(*sessions).to_dict()
