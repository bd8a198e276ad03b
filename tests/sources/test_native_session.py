"""One native log read line by line: its surroundings, its times, how it ended, and numbers of the wrong type."""

import pytest

from sessionlog.events.tokens import TokenUsage
from tests.sources.logs import answered, asked, at, ended, event, go_start, one_record, progress, scanned, start

# --- whose it is


def test_a_request_model_holds_until_the_next_request(tmp_path):
    """Each response belongs to the request before it; one without a request of its own keeps the last."""
    session = scanned(tmp_path, start(), asked(model="a"), answered(), asked(model="b"), answered(), answered())
    assert [r.model for r in session.records] == ["a", "b", "b"]


def test_the_request_model_is_found_in_any_spelling(tmp_path):
    """A line of another writer is decoded, one of ours is not until its model is needed."""
    spaced = b'{"data": {"model": "a"}, "type": "llm.request", "seq": 1, "ts": "2026-11-20T10:00:01Z"}\n'
    assert one_record(tmp_path, start(model="s"), spaced, answered()).model == "a"


def test_the_served_name_is_kept_beside(tmp_path):
    """`response_model` is the attempt's, else the response's; an alias is not merged away."""
    session = scanned(
        tmp_path, start(model="m"), answered(model="m-1", attempt={"response_model": "m-2"}), answered(model="m-1")
    )
    assert [r.response_model for r in session.records] == ["m-2", "m-1"]


def test_a_session_knows_its_surroundings(tmp_path):
    """Folder, harness, route and metadata are taken from the start, metadata of the end on top."""
    session = scanned(
        tmp_path,
        start(
            work_dir="/srv/app",
            requested_harness="x",
            resolved_harness="claude",
            selected_route="fast",
            metadata={"team": "a", "n": 1},
        ),
        ended(metadata={"team": "b"}, selected_route="slow"),
    )
    assert (session.project, session.harness, session.route) == ("/srv/app", "claude", "fast")
    assert session.metadata == {"team": "b", "n": 1}


@pytest.mark.parametrize("folder", ["", ".", "app", "~/app", None, 3])
def test_only_an_absolute_folder_is_a_project(tmp_path, folder):
    """A relative folder names a different place on every machine."""
    assert scanned(tmp_path, start(work_dir=folder)).project == "unknown"


@pytest.mark.parametrize("metadata", ["text", 3, ["a"], None])
def test_metadata_of_the_wrong_type_are_none(tmp_path, metadata):
    """Non-tables do not cost the session."""
    session = scanned(tmp_path, start(metadata=metadata), answered(usage={"input": 1}))
    assert (session.metadata, session.records[0].usage.input) == ({}, 1)


def test_the_prompt_is_the_first_words_of_the_user(tmp_path):
    """The start's prompt, else the first user message of a request; one line, cut at 200 characters."""
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": [{"text": "look\n at"}, 3]}]
    assert scanned(tmp_path, start(prompt=" one \n two "), asked(messages=messages)).prompt == "one two"
    assert scanned(tmp_path, start(), asked(messages=messages), asked(messages=[])).prompt == "look at"
    assert scanned(tmp_path, start(prompt="x" * 999)).prompt == "x" * 200
    assert scanned(tmp_path, start(prompt=["a"]), asked(messages="?")).prompt == ""


def test_the_error_says_why(tmp_path):
    """The end's error, else the last failed call's unless the session succeeded after all."""
    failed = answered(error="overloaded\nretry later")
    assert scanned(tmp_path, start(), failed, ended(status="error", error="gave up")).error == "gave up"
    assert scanned(tmp_path, start(), failed).error == "overloaded retry later"
    assert scanned(tmp_path, start(), failed, answered(), ended()).error == ""


# --- when it was


def test_time_belongs_to_the_response(tmp_path):
    """Each record has its own time, not its session's."""
    session = scanned(tmp_path, start("10:00:00"), answered("10:01:00"), answered("23:59:59"))
    assert [r.time_ns for r in session.records] == [at("10:01:00"), at("23:59:59")]
    assert (session.start_ns, session.last_ns) == (at("10:00:00"), at("23:59:59"))


def test_a_response_without_time_takes_the_one_before(tmp_path):
    """The nearest time that the file knows."""
    session = scanned(tmp_path, start("10:00:00"), progress("10:00:09"), answered(""))
    assert session.records[0].time_ns == at("10:00:09")


def test_a_log_without_times_has_none(tmp_path):
    """No time is made up."""
    session = scanned(tmp_path, start(""), answered(""), ended("", tokens={"input": 5}))
    assert {r.time_ns for r in session.records} == {session.start_ns} == {session.last_ns} == {None}


# --- how it ended


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ([], None),
        ([ended()], "success"),
        ([ended(status="iteration_limit")], "iteration_limit"),
        ([ended(status=None)], ""),
        ([ended(status=3)], ""),
        ([event("session.end", "10:00:03", None)], ""),
        ([ended(status="error"), ended()], "success"),
        ([ended(), ended(status="error")], "error"),
    ],
)
def test_the_last_end_is_the_status(tmp_path, lines, status):
    """None without an end; an end that does not say how is an end all the same."""
    assert scanned(tmp_path, start(), answered(), *lines).status == status


def test_the_first_start_counts(tmp_path):
    """A second session.start in the file changes neither names nor time."""
    session = scanned(
        tmp_path, start("10:00:00", provider="a", model="a"), start("10:00:09", provider="b", model="b"), answered()
    )
    assert (session.start_ns, session.records[0].provider, session.records[0].model) == (at("10:00:00"), "a", "a")


@pytest.mark.parametrize("line", [asked("10:00:09"), answered("10:00:09"), event("tool.call", {}, "10:00:09")])
def test_work_after_the_end_opens_the_session_again(tmp_path, line):
    """A session that was continued and killed is not the success that its first run was."""
    session = scanned(tmp_path, start(), ended("10:00:03", duration_ms=3000), line)
    assert (session.status, session.duration_ms) == (None, None)


def test_an_end_may_come_first(tmp_path):
    """File order is the truth, but a log written backwards still has its start, its totals and no negative time."""
    session = scanned(tmp_path, ended("10:00:09", tokens={"input": 9}), start("10:00:00", model="m"))
    assert (session.start_ns, session.status, session.duration_ms) == (at("10:00:00"), "success", None)
    [record] = session.records
    assert (record.model, record.usage.input, record.time_ns, record.active_ms) == ("m", 9, at("10:00:00"), 0)


def test_a_log_without_start_is_a_session(tmp_path):
    """It begins with its first event, and its responses count."""
    session = scanned(tmp_path, asked("10:00:01", model="m"), answered("10:00:02", usage={"input": 1}))
    assert (session.start_ns, session.counted, session.source) == (at("10:00:01"), True, "fizeau")
    assert (session.records[0].model, session.records[0].provider) == ("m", "unknown")


def test_an_end_alone_is_a_session(tmp_path):
    """Its totals are all that is left of it."""
    session = scanned(tmp_path, ended("10:00:03", tokens={"input": 4}, model="m"))
    assert session.counted
    assert (session.records[0].usage.input, session.records[0].model) == (4, "m")


PIN = event("rejected_override", "10:00:01", {"rejection_error": "no such model"})


@pytest.mark.parametrize(
    ("lines", "counted"),
    [
        ([start()], False),
        ([start(), PIN], False),
        ([start(), PIN, ended(status="error")], False),
        ([start(), PIN, answered()], True),
        ([start(), asked()], False),
        ([go_start()], True),
        ([go_start(), PIN], False),
        ([go_start(), PIN, ended(status="error")], True),
        ([go_start(), PIN, answered()], True),
        ([PIN], False),
        ([event("session.start", "10:00:00", None)], False),
        ([event("session.start", "10:00:00", None), answered()], True),
        ([event("session.start", "10:00:00", None), ended()], False),
        ([progress()], False),
        ([ended()], True),
    ],
)
def test_what_is_listed_but_not_counted(tmp_path, lines, counted):
    """A session without a response, and in the Go dialect a rejected pin and a start without data, use no model."""
    session = scanned(tmp_path, *lines)
    assert session.counted is counted
    assert len(session.records) == 1


def test_a_rejected_pin_says_why(tmp_path):
    """The list of sessions shows the reason."""
    assert scanned(tmp_path, start(), PIN).error == "no such model"
    assert scanned(tmp_path, start(), event("rejected_override", "10:00:01", 3)).error == "pin rejected"


def test_failed_calls_are_requests(tmp_path):
    """A response with an error counts as a failed request, with the latency it took to fail."""
    session = scanned(tmp_path, start(), answered(error="timeout", latency_ms=30_000), answered(error=""))
    assert [(r.requests, r.failed, r.latency_ms) for r in session.records] == [(1, True, 30_000.0), (1, False, None)]


# --- how long it took


@pytest.mark.parametrize(("logged", "kept"), [(1500, 1500), (1500.9, 1500), (0, None), (-2500, None), (None, None)])
def test_the_ends_duration_is_used_when_it_is_one(tmp_path, logged, kept):
    """Zero and negative durations, which a clock step leaves behind, are none."""
    assert scanned(tmp_path, start(), ended(duration_ms=logged)).duration_ms == kept


@pytest.mark.parametrize("logged", ["1500", True, float("nan"), float("inf"), 1e300, [1]])
def test_a_duration_of_the_wrong_type_is_none(tmp_path, logged):
    """Whatever the number is, the session stays."""
    session = scanned(tmp_path, start(), answered(usage={"input": 1}), ended(duration_ms=logged))
    assert (session.duration_ms, session.records[0].usage.input) == (None, 1)


def test_active_time_leaves_pauses_out(tmp_path):
    """Gaps of up to five minutes are activity; each record has what passed since the one before it."""
    session = scanned(
        tmp_path,
        start("10:00:00"),
        answered("10:05:00"),
        progress("10:10:01"),
        answered("10:10:03"),
        progress("10:10:04"),
        progress("12:00:00"),
        progress("12:00:10"),
    )
    assert [r.active_ms for r in session.records] == [300_000, 2_000 + 1_000 + 10_000]


def test_a_clock_that_goes_back_takes_no_time_away(tmp_path):
    """Negative gaps are nothing, and the last event is the latest."""
    session = scanned(tmp_path, start("10:00:10"), answered("10:00:00"), answered("10:00:04"))
    assert [r.active_ms for r in session.records] == [0, 4_000]
    assert session.last_ns == at("10:00:10")


def test_active_time_of_a_session_without_responses(tmp_path):
    """It is kept with its one record."""
    assert one_record(tmp_path, start("10:00:00"), progress("10:01:00"), progress("10:01:30")).active_ms == 90_000


# --- numbers of the wrong type


@pytest.mark.parametrize(
    ("usage", "words"),
    [
        ({"input": -3, "output": 7}, "input: a negative count"),
        ({"input": 1.5, "output": 7}, "input: 1.5 is not a whole number"),
        ({"input": True, "output": 7}, "input: True is not a number"),
        ({"input": "many", "output": 7}, "input: 'many' is not a count"),
        ({"reasoning": "high", "output": 7}, "reasoning: 'high' is not a count"),
        ({"input": 2**53 + 1, "output": 7}, "input: a count over 2^53"),
        ({"input": [3], "output": 7}, "input: a list is not a count"),
    ],
)
def test_a_wrong_count_is_named_and_the_rest_stays(tmp_path, usage, words):
    """One bad field costs that field, never the session."""
    session = scanned(tmp_path, start(), answered(usage=usage, cost_usd=0.5))
    [record], [problem] = session.records, session.problems.first
    assert (record.usage, record.cost_nano) == (TokenUsage(output=7), 500_000_000)
    assert (problem.kind, problem.severity) == ("bad_number", "damage")
    assert problem.detail == f"llm.response seq 1: {words}"


@pytest.mark.parametrize("usage", [{"input": 3.0, "output": "4"}, {"input": " 3 ", "output": 4}])
def test_integral_floats_and_numeric_strings_count(tmp_path, usage):
    """Other writers' spellings of a count are counts."""
    session = scanned(tmp_path, start(), answered(usage=usage))
    assert (session.records[0].usage, session.problems.first) == (TokenUsage(input=3, output=4), ())


@pytest.mark.parametrize("cost", ["free", True, [1], {"usd": 1}, 1e10, float("nan")])
def test_a_wrong_cost_is_unknown_and_named(tmp_path, cost):
    """Tokens stay; the cost is neither 0 nor lost in silence."""
    session = scanned(tmp_path, start(), answered(usage={"input": 3}, cost_usd=cost))
    assert (session.records[0].cost_nano, session.records[0].usage.input) == (None, 3)
    assert [p.kind for p in session.problems.first] == ["bad_number"]


def test_wrong_numbers_of_the_end_are_named_with_its_place(tmp_path):
    """The end's totals are read by the same rules."""
    session = scanned(tmp_path, start(), progress(), ended(tokens={"input": 4, "output": None, "cache_read": -1}))
    assert session.records[0].usage == TokenUsage(input=4)
    assert [p.detail for p in session.problems.first] == ["session.end seq 2: cache_read: a negative count"]


@pytest.mark.parametrize("usage", ["lots", 7, [1]])
def test_a_usage_that_is_no_table_is_none(tmp_path, usage):
    """The response still counts as a request."""
    session = scanned(tmp_path, start(), answered(usage=usage))
    assert (session.records[0].requests, session.records[0].usage.total, session.problems.count) == (1, 0, 1)


@pytest.mark.parametrize("latency", ["12", -1, True, None, float("nan"), 1e300])
def test_a_latency_of_the_wrong_type_is_none(tmp_path, latency):
    """No latency is better than a wrong one."""
    assert one_record(tmp_path, start(), answered(latency_ms=latency)).latency_ms is None


@pytest.mark.parametrize("data", [None, 3, "text", [1, 2]])
def test_a_response_without_an_object_is_an_empty_request(tmp_path, data):
    """The call was made; what it used is not known."""
    record = one_record(tmp_path, start(model="m"), event("llm.response", "10:00:02", data))
    assert (record.model, record.requests, record.usage.total, record.cost_nano) == ("m", 1, 0, None)


def test_a_fork_names_its_parent(tmp_path):
    """The session that it was made of; what it inherits is no turn of its own."""
    old = [{"role": "user", "content": "old"}]
    inherited = event("history.add", "10:00:00", {"reason": "fork", "messages": old})
    first = asked(messages=[{"role": "user", "content": "new"}], earlier_messages=1)
    fork = scanned(tmp_path, start(parent={"session": "p-1", "path": "/p-1.jsonl", "seq": 4}), inherited, first)
    assert (fork.parent, fork.turns, fork.prompt) == ("p-1", 1, "new")


@pytest.mark.parametrize("parent", ["p-1", {"session": 3}, {}, None, ["p-1"]])
def test_a_parent_that_is_none(tmp_path, parent):
    """A session without a parent is nobody's fork."""
    assert scanned(tmp_path, start(parent=parent)).parent == ""


# --- closed without an end


def test_a_session_that_was_closed_without_an_end_is_unfinished(tmp_path):
    """Its logger is gone, so it is not running either; its answers count as they would without the mark."""
    open_log = scanned(tmp_path, start(), asked(model="m"), answered(usage={"input": 3}))
    closed = scanned(tmp_path, start(), asked(model="m"), answered(usage={"input": 3}), ended(status="closed"))
    assert (open_log.status, closed.status) == (None, "unfinished")
    assert [(r.usage, r.cost_nano, r.priced) for r in closed.records] == [
        (r.usage, r.cost_nano, r.priced) for r in open_log.records
    ]


def test_a_session_that_goes_on_after_it_was_closed_is_not_ended(tmp_path):
    """The next request takes the mark back, and a later end is its end."""
    closed = (start(), answered(usage={"input": 3}), ended(status="closed"))
    assert scanned(tmp_path, *closed, asked(model="m")).status is None
    assert scanned(tmp_path, *closed, answered(usage={"input": 4})).status is None
    ended_later = scanned(tmp_path, *closed, answered(usage={"input": 4}), ended(status="success", tokens={"input": 7}))
    assert ended_later.status == "success"
    assert sum((r.usage for r in ended_later.records), TokenUsage()).input == 7


def test_another_logger_that_is_closed_does_not_undo_an_end(tmp_path):
    """The session was ended by one of its two writers."""
    assert scanned(tmp_path, start(), answered(), ended(status="success"), ended(status="closed")).status == "success"
