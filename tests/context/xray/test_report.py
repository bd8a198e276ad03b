"""The context report: its parts always sum to the total, whatever log it looks at, and it says what it cannot see."""

import os
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.context.xray.report import LARGEST, SCHEMA
from sessionlog.errors import AmbiguousSession, InvalidQuery, LogNotReadable
from sessionlog.sources.discover import find_logs
from sessionlog.sources.find import resolve_log
from sessionlog.sources.protocol import Log
from sessionlog.sources.registry import load_source
from tests.context.reports import xray
from tests.context.xray.sized import answer, ask, event, ran, result, said, start, system, user
from tests.profiles import examples
from tests.sources.homes import all_cases, build_home, cases_of

DATA = Path(__file__).parents[3] / "testdata"
TOOLS = [{"name": "read", "description": "Read a file", "parameters": {"type": "object", "properties": {"path": {}}}}]
READ = ("c1", "read", {"path": "src/app.py"})


def write(folder, items, name="s", tail=b""):
    """Write events as a log and return its path."""
    path = folder / f"{name}.jsonl"
    lines = [orjson.dumps(item.to_dict() | {"seq": number}) for number, item in enumerate(items)]
    path.write_bytes(b"".join(line + b"\n" for line in lines) + tail)
    os.utime(path, (0, 0))
    return str(path)


def check(report):
    """The invariant, and that the document says the same."""
    document = report.to_dict()
    assert sum(part.tokens for part in report.parts) == report.total_tokens
    assert sum(part["tokens"] for part in document["parts"]) == document["total_tokens"]
    assert sum(item.tokens for item in report.items) == report.total_tokens
    assert all(part.tokens >= 0 for part in report.parts)
    assert report.reported_tokens in (None, report.total_tokens)
    assert len(report.growth) == report.requests
    assert report.growth[report.request - 1].tokens == report.total_tokens
    orjson.dumps(document)
    return report


SESSION = [
    start(provider="anthropic", model="claude-opus-4-5"),
    ask(system("Be brief. " * 20), user("read the app"), tools=TOOLS, model="claude-opus-4-5"),
    answer("", tool_calls=[{"id": "c1", "name": "read", "arguments": {"path": "src/app.py"}}], prompt=200),
    ran("c1", "def main(): ..."),
    ask(
        system("Be brief. " * 20), user("read the app"), said("", READ), result("c1", "def main(): ..." * 20),
        tools=TOOLS, model="claude-opus-4-5",
    ),
    event("llm.response", content="done", usage={"input": 40, "cache_read": 360, "output": 3}),
]  # fmt: skip


def test_it_tells_what_filled_the_window(tmp_path):
    """The provider's count is the total, the parts fit it, and the cache is a share of it."""
    report = check(xray(write(tmp_path, SESSION)))
    assert (report.request, report.requests, report.session, report.source) == (2, 2, "s", "native")
    assert (report.total_tokens, report.reported_tokens, report.cached_tokens) == (400, 400, 360)
    assert (report.window_tokens, report.window_share, report.cached_share) == (200_000, 0.002, 0.9)
    assert [point.to_dict() for point in report.growth] == [
        {"request": 1, "tokens": 200, "reported": True}, {"request": 2, "tokens": 400, "reported": True}
    ]  # fmt: skip
    assert [part.kind for part in report.parts] == ["system", "tools", "tools", "turn", "turn", "turn"]


def test_an_earlier_request_is_seen_as_it_was(tmp_path):
    """Its own parts, time and count; the growth is the whole session's."""
    report = check(xray(write(tmp_path, SESSION), request=1))
    assert (report.request, report.total_tokens, len(report.growth)) == (1, 200, 2)
    assert [part.name for part in report.parts if part.kind == "turn"] == ["user"]


@pytest.mark.parametrize("request_number", [0, 3, -1, 10**9])
def test_a_request_that_is_not_there_is_refused(tmp_path, request_number):
    """With how many there are."""
    with pytest.raises(InvalidQuery, match=rf"no request {request_number}: s has 2, numbered from 1"):
        xray(write(tmp_path, SESSION), request=request_number)


def test_a_log_without_requests_has_no_context(tmp_path):
    """It is told, not shown as empty."""
    with pytest.raises(LogNotReadable, match="no request to a model in it"):
        xray(write(tmp_path, [start(), answer(prompt=9, agent="scout")]))


def test_a_log_of_answers_only_has_a_total(tmp_path):
    """What the provider counted is known, whatever it was made of."""
    report = xray(write(tmp_path, [start(prompt="go"), answer("yes", prompt=90), answer(prompt=120)]))
    check(report)
    assert (report.total_tokens, report.reported_tokens, [point.tokens for point in report.growth]) == (
        120, 120, [90, 120]
    )  # fmt: skip
    assert report.parts[-1].name == "not in the log (system prompt, tools, overhead)"


def test_a_session_is_found_by_its_id(tmp_path):
    """By its beginning, in a folder; two that begin alike are not guessed between."""
    write(tmp_path, SESSION, name="first")
    assert xray(*resolve_log("fir", str(tmp_path), {})).session == "first"
    write(tmp_path, SESSION, name="fit")
    with pytest.raises(AmbiguousSession):
        resolve_log("fi", str(tmp_path), {})


def test_without_a_count_all_is_estimated(tmp_path):
    """A request that is not answered yet."""
    report = check(xray(write(tmp_path, SESSION[:-1])))
    assert (report.reported_tokens, report.cached_tokens, report.cached_share) == (None, None, None)
    assert report.total_tokens == report.estimated_tokens > 0
    assert [point.reported for point in report.growth] == [True, False]


def test_what_is_not_in_the_log_is_still_there_in_a_request_that_nobody_counted(tmp_path):
    """As much as in the one before it: so an unanswered prompt makes no dent in the growth."""
    items = [start(), ask(user("go")), answer(prompt=9_000), ask(said("ok"), user("on"), earlier_messages=1)]
    report = check(xray(write(tmp_path, items)))
    assert [point.tokens for point in report.growth] == pytest.approx([9_000, 9_010], abs=15)
    assert (report.reported_tokens, report.parts[-1].kind) == (None, "not_in_log")


def test_a_log_torn_in_its_last_answer_keeps_what_the_provider_adds(tmp_path):
    """Our own requests hold whole prompts, and yet the provider may count much more: also in the one it never counted."""
    items = [*SESSION[:2], answer("", prompt=9_000), *SESSION[3:5]]
    whole = check(xray(write(tmp_path, [*items, answer("done", prompt=9_170)], name="whole")))
    torn = check(xray(write(tmp_path, items, name="torn", tail=b'{"session_id":"s","seq":5,"type":"llm.resp')))
    assert (whole.is_whole, torn.reported_tokens, torn.growth[1].reported) == (True, None, False)
    assert torn.total_tokens == pytest.approx(whole.total_tokens, abs=15)
    assert (torn.parts[-1].kind, torn.parts[-1].name) == (whole.parts[-1].kind, whole.parts[-1].name)


def test_an_estimate_that_was_a_little_off_adds_nothing_to_later_requests(tmp_path):
    """Where all of the prompt is told, a small difference is the estimate's error, not a thing in the window."""
    first = xray(write(tmp_path, SESSION[:2], name="first")).total_tokens
    items = [*SESSION[:2], answer("", prompt=first + first // 5), *SESSION[3:5]]
    report = check(xray(write(tmp_path, items)))
    assert report.total_tokens == report.estimated_tokens
    assert "not_in_log" not in {part.kind for part in report.parts}


def test_what_another_agents_log_does_not_hold_is_named(tmp_path):
    """System prompt and tools are the difference between the count and what can be seen."""
    rows = [
        {"type": "user", "uuid": "u", "message": {"role": "user", "content": "hello there"}},
        {"type": "assistant", "uuid": "a", "requestId": "r", "message": {
            "id": "m", "role": "assistant", "model": "claude-opus-4-5", "content": [{"type": "text", "text": "hi"}],
            "stop_reason": "end_turn", "usage": {"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": 15_000},
        }},
    ]  # fmt: skip
    base = {"sessionId": "11111111-1111-4111-8111-111111111111", "cwd": "/w", "timestamp": "2026-11-21T10:00:00Z"}
    path = tmp_path / f"{base['sessionId']}.jsonl"
    path.write_bytes(b"".join(orjson.dumps(base | row) + b"\n" for row in rows))
    report = check(xray(str(path)))
    assert (report.source, report.total_tokens, report.is_whole) == ("claude-code", 15_005, False)
    assert report.parts[-1].name == "not in the log (system prompt, tools, overhead)"
    assert report.parts[-1].tokens == 15_005 - report.estimated_tokens


def test_a_torn_tail_is_counted_and_nothing_is_lost(tmp_path):
    """A killed writer's last line."""
    report = check(xray(write(tmp_path, SESSION, tail=b'{"session_id":"s","seq":9,"type":"llm.req')))
    assert (report.requests, report.problem_count) == (2, 1)


def test_damage_in_the_middle_costs_that_line_only(tmp_path):
    """The request in it is not counted."""
    path = Path(write(tmp_path, SESSION))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b'{"torn":\n', *lines[2:]]))
    report = check(xray(str(path)))
    assert (report.requests, report.problem_count) == (2, 1)
    assert report.problems[0].line == 3


def test_the_document_has_the_largest_or_all(tmp_path):
    """Under its schema."""
    many = [message for n in range(20) for message in (user(f"question {n}"), said(f"answer {n}"))]
    report = check(xray(write(tmp_path, [start(), ask(*many)])))
    assert report.to_dict()["schema"] == SCHEMA
    assert len(report.to_dict()["largest"]) == LARGEST
    assert len(report.to_dict(full=True)["largest"]) == len(report.items) == 40


def test_the_same_file_read_again_is_named(tmp_path):
    """As one thing, and as a repeat, in the measure of the parts."""
    text = "a line of code\n" * 50
    messages = [m for n in range(5) for m in (said("", (f"c{n}", *READ[1:])), result(f"c{n}", text))]
    report = check(xray(write(tmp_path, [start(), ask(user("go"), *messages), answer(prompt=600)])))
    assert report.items[0].name == "read src/app.py ×5 (the same file five times)"
    assert report.repeats[0].tokens == pytest.approx(report.items[0].tokens, abs=2)
    assert report.repeats[0].spare_tokens == pytest.approx(report.repeats[0].tokens * 0.8, rel=0.05)


def looked_at(logs):
    """Check every session of some logs; return how many asked a model."""
    seen = 0
    for log in logs:
        for session in log.source.name_sessions(log.path):
            try:
                check(xray(log, session))
                seen += 1
            except LogNotReadable as error:
                assert "no request" in str(error)  # noqa: PT017 - an error is one of two outcomes
    return seen


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("source", sorted({case.split("/")[0] for case in all_cases()}))
def test_every_source_gives_a_report(source, step, tmp_path):
    """All its sessions that asked a model, damaged ones too; in the quick tier those of every third case."""
    seen = 0
    for case in cases_of(source)[::step]:
        home = build_home(case, tmp_path / case)
        seen += looked_at(item for item in find_logs((str(home),), {}) if isinstance(item, Log))
    assert seen


def test_the_logs_of_replay_give_reports():
    """Hostile, broken off, of the oldest dialect."""
    assert looked_at(item for item in find_logs((str(DATA / "replay"),), {}) if isinstance(item, Log)) >= 7


TEXT = st.text(max_size=30)
MESSAGES = st.one_of(
    st.builds(user, TEXT), st.builds(system, TEXT), st.builds(result, st.sampled_from(["a", "b"]), TEXT),
    st.builds(lambda text, call: said(text, (call, "read", {"path": text})), TEXT, st.sampled_from(["a", "b"])),
)  # fmt: skip
EVENTS = st.one_of(
    st.builds(
        lambda messages, tools, earlier: ask(*messages, tools=tools, earlier_messages=earlier),
        st.lists(MESSAGES, max_size=5), st.sampled_from([None, TOOLS]), st.none() | st.integers(0, 3),
    ),
    st.builds(lambda text, prompt: answer(text, prompt=prompt), TEXT, st.none() | st.integers(0, 3000)),
    st.builds(lambda text: ran("a", text), TEXT),
    st.builds(lambda text: event("compaction.end", success=True, summary=text), TEXT),
)  # fmt: skip


@examples(100)
@given(st.lists(EVENTS, max_size=12), st.sampled_from(["native", "claude-code"]))
def test_parts_sum_to_the_total(tmp_path_factory, events, source):
    """For any session, read as our own or as another agent's, at every request."""
    path = write(tmp_path_factory.getbasetemp(), [start(), *events], name="generated")
    native = load_source("native")
    log = Log(source=native, path=path)
    if source != "native":
        log = Log(
            source=type(native)(**{name: getattr(native, name) for name in native.__slots__} | {"id": source}),
            path=path,
        )
    try:
        last = xray(log)
    except LogNotReadable:
        assert not any(one.type in ("llm.request", "llm.response") for one in events)
        return
    for number in range(1, last.requests + 1):
        check(xray(log, request=number))


def test_items_of_a_part_add_up_to_it(tmp_path):
    """They are rounded once: a part that is one item is as large as that, also where the estimate is scaled."""
    said_ = [system("Be brief. " * 37), user("go " * 41)]
    for prompt in range(150, 175):
        report = xray(write(tmp_path, [start(), ask(*said_), answer(prompt=prompt)], name=f"p{prompt}"))
        check(report)
        sizes = {kind: sum(part.tokens for part in report.parts if part.kind == kind) for kind in ("system", "turn")}
        assert {item.kind: item.tokens for item in report.items} == sizes


def test_a_window_that_held_more_is_not_the_models(tmp_path):
    """More tokens than fit were counted, so it is unknown how many do."""
    report = xray(write(tmp_path, [start(model="gpt-4"), ask(user("go")), answer(prompt=50_000)]))
    assert (report.total_tokens, report.window_tokens, report.window_share) == (50_000, None, None)
    fits = xray(write(tmp_path, [start(model="gpt-4"), ask(user("go")), answer(prompt=5_000)], name="fits"))
    assert fits.window_tokens == 8192


def test_a_request_that_waits_is_told(tmp_path):
    """Of the last one only."""
    path = write(tmp_path, [start(), ask(user("go")), answer(), ask(user("go"), user("on"))])
    assert [xray(path, request=number).is_answered for number in (1, 2)] == [True, False]
    assert xray(path).to_dict()["answered"] is False
