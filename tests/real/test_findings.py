"""One test for each thing that real clients' homes showed to be wrong: D1 to D18, and forks of older Codex versions.

Sessions are found by the request that began them, never by an id written here.
"""

import json
from pathlib import Path

import pytest

from tests.real.data import Home, needs_homes
from tests.real.deviations import deviating, expected_of
from tests.real.matching import match
from tests.real.reading import Reading

D18 = {
    "codex": "codex", "codex-0.118.0": "codex", "kilo": "kilo", "kimi": "kimi", "kimicode": "kimi", "llm": "llm",
    "opencode": "opencode", "opencode-1.2.27": "opencode",
}  # fmt: skip


def named(reading: Reading, number: int) -> str:
    """The session that a request named."""
    found = [request.session for request in reading.home.requests if request.number == number]
    assert found[0]
    return found[0]


def tokens(reading: Reading, numbers: set[int]) -> tuple[int, ...]:
    """The tokens of some requests, class by class."""
    usage = [request.tokens.classes for request in reading.home.requests if request.number in numbers]
    return tuple(map(sum, zip(*usage, strict=True)))


def counted(reading: Reading, session: str | None = None) -> tuple[int, ...]:
    """The tokens of a session's records, or of all."""
    usage = [record.tokens.classes for record in reading.records if session in (None, record.session)]
    return tuple(map(sum, zip(*usage, strict=True))) if usage else (0, 0, 0, 0)


def record(reading: Reading, number: int):
    """The record of a request of the home's own run."""
    return match(reading).record_of(number, reading.home.name)


@needs_homes("claude-1.0.9")
@deviating("d1")
def test_d1_resumed_sessions_of_old_claude_code_count_once(read):
    """Rows copied into a resumed session have the message id but no request id, and are not counted again."""
    reading = read("claude-1.0.9")
    assert counted(reading) == tokens(reading, {request.number for request in reading.home.counted()})
    first, second = record(reading, 1), record(reading, 4)
    assert first.path != second.path
    assert counted(reading, second.session) == tokens(reading, {4, 7})


@needs_homes("claude", "claude-2.0.30")
@deviating("d2")
@pytest.mark.parametrize(("home", "original", "fork"), [("claude", 1, 7), ("claude", 9, 39), ("claude-2.0.30", 1, 21)])
def test_d2_a_fork_of_claude_code_keeps_the_originals_requests_where_they_were(read, home, original, fork):
    """The original is listed with its requests, and the fork below it with its own alone."""
    reading = read(home)
    for session in (named(reading, original), named(reading, fork)):
        own = {request.number for request in reading.home.counted() if request.session == session}
        records = [one for one in reading.records if one.session == session and one.tokens.cache_read]
        assert sorted(one.tokens.classes for one in records) == sorted(tokens(reading, {number}) for number in own)
    assert reading.sessions[named(reading, fork)]["parent"] == named(reading, original)


@needs_homes("claude")
@deviating("d3")
def test_d3_the_requests_of_a_compaction_are_counted(read):
    """A session's `cost-state` rows tell what /compact used; its sum is the truth, and a fork's is not its parent's."""
    reading = read("claude")
    session = named(reading, 34)
    own = {request.number for request in reading.home.counted() if request.session == session}
    assert counted(reading, session) == tokens(reading, own)
    fork = named(reading, 39)
    assert counted(reading, fork) == tokens(reading, {39})


@needs_homes("kilo")
@deviating("d4")
def test_d4_a_fork_of_kilo_counts_once(read):
    """A copied response has no cost; the original is counted, with its cost, in the session that it was made in."""
    reading = read("kilo")
    copies = [one for one in reading.records if one.tokens.classes == tokens(reading, {20})]
    assert len(copies) == 1
    assert copies[0].known_cost_usd
    (fork,) = {one.session for one in reading.records if one.tokens.classes == tokens(reading, {21})}
    assert copies[0].session != fork


@needs_homes("opencode-1.2.27")
@deviating("d5")
def test_d5_output_of_older_opencode_already_includes_reasoning(read):
    """Where `tokens.total` proves that output includes reasoning, it is not added again."""
    reading = read("opencode-1.2.27")
    assert counted(reading) == tokens(reading, {request.number for request in reading.home.counted()})


@needs_homes("qwen-0.5.0")
@deviating("d6")
def test_d6_subagents_of_older_qwen_code_are_counted(read):
    """Their requests are only in the telemetry of the main log, told apart by the prompt id."""
    reading = read("qwen-0.5.0")
    assert counted(reading) == tokens(reading, {request.number for request in reading.home.counted()})
    assert {record(reading, number).agent for number in (8, 9)} == {"general-purpose"}
    assert {record(reading, number).session for number in (7, 8, 9, 10)} == {record(reading, 7).session}


@needs_homes("qwen")
@deviating("d7")
def test_d7_subagents_of_qwen_code_have_their_model(read):
    """The model of a sub-agent's rows is in the file beside them."""
    reading = read("qwen")
    assert {record(reading, number).model for number in (15, 16)} == {"qwen3-coder-plus"}


@needs_homes("codex")
@deviating("d8")
def test_d8_a_failed_turn_of_codex_is_an_error(read):
    """`task_complete` with an error ends the session as failed, in reports and in the replay."""
    reading = read("codex")
    session = named(reading, 11)
    assert reading.sessions[session]["status"] == "error"
    assert [one.failed for one in reading.records if one.session == session] == [1]
    assert [end["status"] for end in reading.replay(session).data("session.end")] == ["error"]


@needs_homes("codex")
@deviating("d9")
def test_d9_codex_killed_while_a_tool_runs_has_paid_for_the_response(read):
    """The usage record stands in the log before the tool's output, and counts."""
    reading = read("codex")
    assert record(reading, 26).tokens.classes == tokens(reading, {26})
    assert record(reading, 26).session == named(reading, 26)


@needs_homes("codex")
@deviating("d10")
def test_d10_a_response_of_codex_ends_before_its_tools_run(read):
    """Latency is the model's time, and the response's time is before the tool that it calls, however long that takes."""
    reading = read("codex")
    for number in (1, 2, 3, 4, 5):
        assert record(reading, number).latency_ms is not None
        assert record(reading, number).latency_ms > 10
    (request,) = [request for request in reading.home.requests if request.number == 27]
    assert record(reading, 27).seconds - request.time < 1


@needs_homes("codex")
@deviating("d11")
def test_d11_a_fork_of_codex_shows_the_conversation_that_it_goes_on_with(read):
    """A fork's file holds only its own rows; replay shows the parent's before them, and they count once."""
    reading = read("codex")
    replay = reading.replay(named(reading, 16))
    assert "Answer 6:" in replay.text
    assert "Answer 17:" in replay.text
    assert counted(reading, named(reading, 16)) == tokens(reading, {16, 17})


@needs_homes("kimicode")
@deviating("d12")
def test_d12_a_failed_turn_of_kimi_code_is_seen(read):
    """A step that ends with an error is a failed request, and the turn's failure the session's."""
    reading = read("kimicode")
    (failed,) = [one for one in reading.records if one.failed and one.status == "error"]
    assert "400" in reading.sessions[failed.session]["error"]
    assert reading.sessions[failed.session]["prompt"].startswith("Refused.")


@needs_homes("kimicode")
@deviating("d13")
def test_d13_a_provider_of_type_kimi_is_moonshot(read):
    """A model of Kimi is Moonshot's whatever API it speaks, and has a price; OpenAI's stay OpenAI's."""
    reading = read("kimicode")
    used = [one for one in reading.records if one.model.startswith("kimi") and one.has_tokens]
    assert {one.provider for one in used} == {"moonshotai"}
    assert all(one.cost_usd for one in used)
    assert record(reading, 8).provider == "openai"


@needs_homes("openclaw", "openclaw-2026.6.11")
@deviating("d14")
@pytest.mark.parametrize("home", ["openclaw", "openclaw-2026.6.11"])
def test_d14_openclaw_tells_reasoning_tokens(read, home):
    """`usage.reasoningTokens` is the reasoning."""
    assert record(read(home), 1).tokens.reasoning == 21


@needs_homes("claude-th")
@deviating("d15")
def test_d15_claude_code_tells_thinking_tokens(read):
    """`usage.output_tokens_details.thinking_tokens` is the reasoning."""
    reading = read("claude-th")
    assert [record(reading, number).tokens.reasoning for number in (1, 2, 3)] == [21, 22, 23]


@needs_homes("claude")
@deviating("d16")
def test_d16_an_interrupted_answer_of_claude_code_is_partial(read):
    """An answer without a stop reason was aborted, and its output is only what had come."""
    assert record(read("claude"), 31).quality == "partial"


@needs_homes("claude")
@deviating("d17")
def test_d17_the_context_of_claude_code_shows_its_system_prompt_and_tools(read):
    """The log holds the whole request; little of it is not in the log."""
    reading = read("claude")
    parts = reading.document("context", named(reading, 1))["parts"]
    assert {"system", "tools"} <= {part["kind"] for part in parts}
    assert sum(part["share"] for part in parts if part["kind"] == "not_in_log") < 0.2


@pytest.mark.parametrize(
    "home", [pytest.param(home, marks=(needs_homes(home), *expected_of(home, "d18 harness"))) for home in D18]
)
def test_d18_the_harness_is_known(read, home):
    """The agent program has a name, its source's."""
    assert {row["harness"] for row in read(home).sessions.values()} == {D18[home]}


@pytest.mark.parametrize(
    ("home", "number"),
    [
        pytest.param(home, number, marks=(needs_homes(home), *expected_of(home, "d18 sessions")))
        for home, number in (("claude", 30), ("codex", 19), ("codex", 25))
    ],
)
def test_d18_sessions_without_a_response_are_listed(read, home, number):
    """A session that was killed or interrupted before its first answer is a session, in the view and in the list."""
    reading = read(home)
    session = named(reading, number)
    listed = reading.document("sessions")["rows"]
    assert session in reading.sessions
    assert session in {row["session"] for row in listed}


@needs_homes("claude")
@deviating("d18 model")
def test_d18_a_failed_request_of_claude_code_has_its_model(read):
    """The `api-request` row before the failure names the model."""
    reading = read("claude")
    (failed,) = [one for one in reading.records if one.failed]
    assert failed.model == "claude-opus-4-5-20251101"


_SUBAGENTS = {"claude": 11, "claude-2.0.30": 28, "gemini": 14, "kilo": 14, "kimicode": 20, "opencode": 29, "qwen": 15}
"""A request of each home that a sub-agent made, with a call of a tool: the parent's own rows do not repeat it."""


@pytest.mark.parametrize(
    "home", [pytest.param(home, marks=(needs_homes(home), *expected_of(home, "d18 sub-agents"))) for home in _SUBAGENTS]
)
def test_d18_a_session_replays_its_subagents(read, home):
    """A sub-agent's answers belong to the replay of its session, as its tokens belong to the session's sum."""
    reading = read(home)
    one = record(reading, _SUBAGENTS[home])
    (request,) = [request for request in reading.home.requests if request.number == _SUBAGENTS[home]]
    assert any(mark in reading.replay(one.session).text for mark in request.marks)


@needs_homes("openclaw", "openclaw-2026.6.11")
@deviating("d18 tools")
@pytest.mark.parametrize(("home", "duration"), [("openclaw", 439), ("openclaw-2026.6.11", 86)])
def test_d18_tool_times_of_openclaw_are_those_that_it_measured(read, home, duration):
    """`details.durationMs` is how long a tool took, not the time between two rows."""
    assert duration in [tool["duration_ms"] for tool in read(home).tools if tool["tool"] == "exec"]


_PARENT, _FORK = "019a0000-0001-7000-8000-000000000001", "019a0010-0005-7000-8000-000000000005"


def _row(time: str, type_: str, **data) -> str:
    return json.dumps({"timestamp": f"2026-10-10T{time}Z", "type": type_, "payload": data})


def _meta(time: str, id_: str, **more) -> str:
    made = "2026-10-10T10:00:00.000Z" if id_ == _PARENT else "2026-10-10T11:00:00.900Z"
    known = {"id": id_, "timestamp": made, "cwd": "/w/api", "cli_version": "0.98.0", "source": "cli"}
    return _row(time, "session_meta", **known, model_provider="openai", **more)


def _used(time: str, total: int, last: int) -> str:
    def usage(number: int):
        return {"input_tokens": number, "cached_input_tokens": 0, "output_tokens": 5, "total_tokens": number + 5}

    return _row(
        time, "event_msg", type="token_count", info={"total_token_usage": usage(total), "last_token_usage": usage(last)}
    )


def _answers(*times: str) -> list[str]:
    """The parent's turn with its two answers, each row at its time."""
    model = _row(times[0], "turn_context", cwd="/w/api", model="gpt-5")
    asked = _row(times[1], "event_msg", type="user_message", message="Write a parser")
    return [model, asked, _used(times[2], 100, 100), _used(times[3], 300, 200)]


@pytest.mark.parametrize(
    "times",
    [
        pytest.param(("11:00:02.000",) * 4, id="a-second-later"),
        pytest.param(("11:00:00.990", "11:00:00.999", "11:00:01.001", "11:00:01.002"), id="straddling-a-second"),
    ],
)
@deviating("codex forks")
def test_replayed_history_of_an_older_codex_fork_counts_once(tmp_path: Path, times):
    """A fork's replay is one burst of rows: where it begins or ends in another second, it is still the parent's."""
    folder = tmp_path / "home" / ".codex" / "sessions" / "2026" / "10" / "10"
    folder.mkdir(parents=True)
    parent = [_meta("10:00:00.000", _PARENT), *_answers("10:00:01.000", "10:00:01.000", "10:00:05.000", "10:00:09.000")]
    own = [
        _row("11:00:09.000", "turn_context", cwd="/w/api", model="gpt-5"),
        _row("11:00:09.000", "event_msg", type="user_message", message="Now a printer"),
        _used("11:00:12.000", 700, 400),
    ]
    fork = [_meta("11:00:00.900", _FORK, forked_from_id=_PARENT), _meta(times[0], _PARENT), *_answers(*times), *own]
    for id_, rows, stamp in ((_PARENT, parent, "10-00-00"), (_FORK, fork, "11-00-00")):
        (folder / f"rollout-2026-10-10T{stamp}-{id_}.jsonl").write_text("\n".join(rows) + "\n", "utf-8")
    home = Home(name="home", folder=tmp_path, requests=(), missing=0, folds_cache_write=False)
    records = Reading(home, tmp_path / "home").records
    assert sorted((one.session, one.input_tokens) for one in records) == [(_PARENT, 100), (_PARENT, 200), (_FORK, 400)]
