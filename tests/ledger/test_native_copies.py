"""Copies of native logs: a log that lies in other folders, too, whole or as it was earlier, counts once."""

import json

from hypothesis import given
from hypothesis import strategies as st

from sessionlog.analytics.sessions import list_sessions
from sessionlog.analytics.usage import aggregate_usage
from tests.engine.reports import documents
from tests.profiles import examples
from tests.sources.logs import answered, asked, ended, event, go_start, start, write_log

NAMES = ("usage", "sessions", "models", "tools", "blocks")


def clocked(turns, begun):
    """The events with times that only grow."""
    clocks = (f"10:{number // 6:02}:{number % 6 * 10:02}" for number in range(200))
    return [make(clock) for make, clock in zip([begun, *turns], clocks, strict=False)]


def response(**data):
    return lambda clock: answered(clock, **data)


USAGES = st.builds(dict, input=st.integers(0, 9), output=st.integers(0, 9))
TURNS = st.one_of(
    st.builds(response, usage=USAGES, cost_usd=st.sampled_from([None, 0.25]), model=st.sampled_from(["m", "n"])),
    st.just(response(error="boom", usage=None)),
    st.just(lambda clock: asked(clock, model="m", messages=[{"role": "user", "content": "go"}])),
    st.just(lambda clock: event("tool.call", clock, {"tool": "bash", "output": "ü"})),
    st.just(lambda clock: ended(clock, duration_ms=5)),
)
STARTS = st.sampled_from([lambda clock: start(clock, provider="p"), lambda clock: go_start(clock, provider="p")])
SESSIONS = st.lists(st.builds(clocked, st.lists(TURNS, max_size=12), STARTS), min_size=1, max_size=3)
CUTS = st.lists(st.tuples(st.sampled_from(["a", "n", "z/z"]), st.integers(0, 14)), max_size=3)


def numbers(folder):
    """What the reports count, without active times: the end of an earlier copy has no more of them than its log had."""
    found = {}
    for name, text in documents([str(folder)], NAMES, jobs=1).items():
        document = json.loads(text)
        found[name] = [[_counted(row) for row in document["rows"]], _counted(document["totals"])]
    return found


_OF_TIME = ("path", "duration_ms", "input_tokens_per_second", "output_tokens_per_second")


def _counted(row):
    return {name: value for name, value in row.items() if name not in _OF_TIME}


@examples(120)
@given(sessions=SESSIONS, cuts=st.lists(CUTS, min_size=3, max_size=3))
def test_copies_change_no_report(tmp_path_factory, sessions, cuts):
    """Whole copies and earlier ones, in any folders."""
    home = tmp_path_factory.mktemp("copies")
    for number, items in enumerate(sessions):
        write_log(home / "m" / f"s{number}.jsonl", *items)
    expected = numbers(home)
    for number, items in enumerate(sessions):
        for folder, length in cuts[number]:
            write_log(home / folder / f"s{number}.jsonl", *items[: length + 1])
    assert numbers(home) == expected


TURN = [asked("10:00:01", model="m"), answered("10:00:02", usage={"input": 10, "output": 5}, cost_usd=0.5)]


def tokens(*folders):
    report = aggregate_usage([str(folder) for folder in folders])
    return report.totals.sessions, report.totals.requests, report.totals.input_tokens + report.totals.output_tokens


def test_copies_that_go_on_in_two_ways_share_what_they_have_in_common(tmp_path):
    """A session was continued on two machines from one backup."""
    for name, minute in (("a", 1), ("b", 2)):
        write_log(tmp_path / name / "s.jsonl", start(), *TURN, answered(f"10:0{minute}:00", usage={"input": 100}))
    assert tokens(tmp_path) == (1, 3, 215)


def test_sessions_of_one_name_that_began_at_other_times_are_two(tmp_path):
    """Their names are alike, nothing else."""
    for name, clock in (("a", "10:00:00"), ("b", "09:00:00")):
        write_log(tmp_path / name / "s.jsonl", start(clock), *TURN)
    assert tokens(tmp_path) == (2, 2, 30)
    assert len(list_sessions(str(tmp_path)).rows) == 2


def test_a_log_under_another_name_is_another_session(tmp_path):
    """The name is the session's id."""
    for name in ("one", "two"):
        write_log(tmp_path / f"{name}.jsonl", start(), *TURN)
    assert tokens(tmp_path) == (2, 2, 30)
