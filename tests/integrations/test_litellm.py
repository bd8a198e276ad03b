"""`integrations.litellm`: its reader on literal reports, and the real library where it is installed.

litellm needs an older openai than our tests, so it has an environment of its own: `pip install litellm mcp`, and
`pytest -m slow tests/integrations/test_litellm.py` with that Python.
"""

import asyncio
import sys
import threading
from time import perf_counter

import pytest

from sessionlog import SessionLogger, aggregate_usage, check_logs, read_events, replay
from sessionlog.errors import MissingExtra
from sessionlog.events.tokens import TokenUsage
from sessionlog.integrations import litellm as integration
from sessionlog.integrations.litellm import CallRecorder, read_report, read_tokens

MESSAGES = [{"role": "user", "content": "what is 2 + 3?"}]
TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}]
CALLED = {"id": "t1", "type": "function", "function": {"name": "add", "arguments": '{"a": 2, "b": 3}'}}
USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 7,
    "total_tokens": 107,
    "prompt_tokens_details": {"cached_tokens": 80},
}


def completion(content="5", usage=USAGE, **more):
    """A body as the provider sends it."""
    message = {"role": "assistant", "content": content, **more}
    choice = {"index": 0, "finish_reason": "tool_calls" if more else "stop", "message": message}
    return {"id": "x", "model": "gpt-4o-2024-11-20", "object": "chat.completion", "choices": [choice], "usage": usage}


def report(call="c1", body=None, **more):
    """A report of a call, as litellm makes it."""
    body = completion() if body is None else body
    return {
        "litellm_call_id": call, "status": "success", "startTime": 1000.0, "endTime": 1000.25, "model": "gpt-4o",
        "custom_llm_provider": "openai", "response": body, "messages": MESSAGES, "model_parameters": {},
        "metadata": {"usage_object": body.get("usage")}, "response_cost": 0.0002, "cache_hit": None,
    } | more  # fmt: skip


def failed(call="c1", **more):
    """A report of a failed call."""
    details = {"error_class": "RateLimitError", "error_message": "slow down"}
    return (
        report(call, {}, status="failure", error_information=details, error_str="slow down", response_cost=0.0) | more
    )


def ask(callback, call="c1", **settings):
    """What litellm calls before a request."""
    callback.log_pre_api_call("gpt-4o", MESSAGES, {"litellm_call_id": call, "optional_params": settings})


def succeed(callback, given=None):
    """What litellm calls after a response."""
    given = given or report()
    callback.log_success_event(kwargs={"standard_logging_object": given}, response_obj=None, start_time=0, end_time=0)


def fail(callback, given=None):
    """What litellm calls after an error."""
    callback.log_failure_event({"standard_logging_object": given or failed()}, None, 0, 0)


def events_of(folder):
    """The events of the only log, which is well formed."""
    [path] = folder.glob("*.jsonl")
    [check] = check_logs(path)
    assert (check.damaged, check.notes) == (0, ())
    return list(read_events(path))


def of_type(folder, kind):
    """The payloads of one type."""
    return [event.data for event in events_of(folder) if event.type == kind]


def usage_of(folder):
    """What reports count: requests, input, cache reads, output."""
    row = aggregate_usage(folder).totals
    return row.requests, row.input_tokens, row.cache_read_tokens, row.output_tokens


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (USAGE, TokenUsage(input=20, cache_read=80, output=7)),
        ({"prompt_tokens": 10, "completion_tokens": 20, "prompt_tokens_details": None}, TokenUsage(input=10, output=20)),
        (
            {
                "prompt_tokens": 1000, "completion_tokens": 50, "cache_read_input_tokens": 700,
                "cache_creation_input_tokens": 200, "prompt_tokens_details": {
                    "cached_tokens": 700, "cache_creation_tokens": 200,
                    "cache_creation_token_details": {"ephemeral_5m_input_tokens": 50, "ephemeral_1h_input_tokens": 150},
                },
            },
            TokenUsage(input=100, cache_read=700, cache_write=200, cache_write_1h=150, output=50),
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 30, "completion_tokens_details": {"reasoning_tokens": 25}},
            TokenUsage(input=9, output=30, reasoning=25),
        ),
        ({"prompt_tokens": 8, "completion_tokens": 2, "cost": 4e-05}, TokenUsage(input=8, output=2)),
    ],
)  # fmt: skip
def test_tokens(usage, tokens):
    """The library counts cached tokens as part of the prompt; our classes do not overlap."""
    assert read_tokens({"metadata": {"usage_object": usage}}) == tokens


def test_tokens_without_a_usage_object():
    """The report has sums."""
    assert read_tokens({"prompt_tokens": 3, "completion_tokens": 4}) == TokenUsage(input=3, output=4)
    assert read_tokens({"metadata": {}, "prompt_tokens": 0}) is None


def test_a_report():
    """Under our names; litellm's estimate is no recorded cost."""
    fields = read_report(report(body=completion(None, tool_calls=[CALLED])))
    assert (fields["model"], fields["provider"], fields["finish_reason"]) == (
        "gpt-4o-2024-11-20",
        "openai",
        "tool_calls",
    )
    assert [(call["id"], call["name"]) for call in fields["tool_calls"]] == [("t1", "add")]
    assert fields["litellm_cost_usd"] == 0.0002
    assert "cost_usd" not in fields
    assert "content" not in fields


@pytest.mark.parametrize(
    ("body", "content"),
    [
        ({"choices": [{"text": "five", "index": 0}]}, "five"),
        ({"output": [{"type": "message", "content": [{"type": "output_text", "text": "five"}]}]}, "five"),
        ({"data": [{"embedding": [0.1, 0.2]}]}, None),
        ({}, None),
    ],
)
def test_other_bodies(body, content):
    """Text completions and responses have a text, embeddings have none."""
    assert read_report(report(body=body)).get("content") == content


def test_an_answer_from_the_cache(tmp_path):
    """The library has asked no provider: no tokens, no cost; the request is written with the response."""
    with CallRecorder(directory=tmp_path) as callback:
        succeed(callback, report(cache_hit=True))
    assert of_type(tmp_path, "llm.request")[0]["messages"] == MESSAGES
    [answer] = of_type(tmp_path, "llm.response")
    assert (answer["content"], answer["cost_usd"], answer["cache_hit"]) == ("5", 0, True)
    assert usage_of(tmp_path) == (1, 0, 0, 0)


def test_a_call(tmp_path):
    """A request before, a response after it."""
    with CallRecorder(directory=tmp_path) as callback:
        ask(callback, tools=TOOLS, temperature=0.2, extra_body={})
        assert [event.type for event in events_of(tmp_path)] == ["session.start", "llm.request"]
        succeed(callback)
    request, response, end = (event.data for event in events_of(tmp_path)[1:])
    assert (request["model"], request["temperature"], request["tools"]) == ("gpt-4o", 0.2, TOOLS)
    assert "extra_body" not in request
    assert (response["content"], response["latency_ms"], response["call_id"]) == ("5", 250, "c1")
    assert end["status"] == "success"
    assert usage_of(tmp_path) == (1, 20, 80, 7)


def test_a_call_that_is_reported_twice(tmp_path):
    """From a thread and from a task; a second attempt with the same id is another one."""
    with CallRecorder(directory=tmp_path) as callback:
        ask(callback)
        threads = [threading.Thread(target=fail, args=(callback,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        asyncio.run(callback.async_log_failure_event({"standard_logging_object": failed()}, None, 0, 0))
        ask(callback)
        succeed(callback, report(startTime=1000.5, endTime=1001.0))
    assert [one.get("error") for one in of_type(tmp_path, "llm.response")] == ["RateLimitError: slow down", None]
    assert len(of_type(tmp_path, "llm.request")) == 2
    assert aggregate_usage(tmp_path).totals.failed_requests == 1


def test_a_call_that_is_never_reported(tmp_path):
    """A stream that the host has left."""
    callback = CallRecorder(directory=tmp_path)
    ask(callback)
    callback.close(0.01)
    [answer] = of_type(tmp_path, "llm.response")
    assert answer["partial"] == "cancelled"
    assert "error" not in answer


def test_closing_waits_for_reports(tmp_path):
    """The library reports from a thread."""
    callback = CallRecorder(directory=tmp_path)
    ask(callback)
    timer = threading.Timer(0.02, succeed, args=(callback,))
    timer.start()
    asyncio.run(callback.aclose())
    timer.join()
    assert [one["content"] for one in of_type(tmp_path, "llm.response")] == ["5"]


def test_a_given_logger_is_ended_by_its_owner(tmp_path):
    """The callback only writes to it."""
    with SessionLogger(tmp_path, "s") as log:
        with CallRecorder(log) as callback:
            ask(callback)
            succeed(callback)
        assert log.llm_response("still open")
    assert [event.type for event in events_of(tmp_path)].count("session.end") == 1


def test_a_failure_of_the_integration(tmp_path, monkeypatch):
    """The library does not see it; health() does, and nothing waits for the call."""

    def broken(report):
        raise LookupError("no such field")

    monkeypatch.setattr(integration, "read_report", broken)
    with SessionLogger(tmp_path, "s", notify=lambda _: None) as log:
        with CallRecorder(log) as callback:
            ask(callback)
            succeed(callback)
            callback.log_success_event({})
        health = log.health()
    assert (health.dropped_by, health.last_error) == ({"integration": 2}, "integration: 'standard_logging_object'")


def test_replay(tmp_path):
    """The log reads as the calls went, with the tool that the host has run."""
    with CallRecorder(directory=tmp_path, session_id="s") as callback:
        ask(callback)
        succeed(callback, report(body=completion(None, tool_calls=[CALLED])))
        called = {"role": "assistant", "content": None, "tool_calls": [CALLED]}
        more = [*MESSAGES, called, {"role": "tool", "tool_call_id": "t1", "content": "five"}]
        callback.log_pre_api_call("gpt-4o", more, {"litellm_call_id": "c2", "optional_params": {}})
        succeed(callback, report("c2", completion("It is 5.")))
    text = "\n".join(replay(tmp_path / "s.jsonl"))
    for line in ("what is 2 + 3?", "⚙ add", "five", "It is 5.", "20 in · 80 cached · 7 out"):
        assert line in text
    assert text.index("⚙ add") < text.index("five") < text.index("It is 5.")


def test_a_call_costs_little(tmp_path):
    """Beyond the two events that it writes."""
    reports = [{"standard_logging_object": report(f"c{number}")} for number in range(300)]
    with SessionLogger(tmp_path, "s") as log:
        fields = read_report(report())
        start = perf_counter()
        for _ in reports:
            log.llm_request(MESSAGES, model="gpt-4o", call_id="c1")
            log.llm_response(**fields, latency_ms=1.0, call_id="c1")
        written = perf_counter() - start
        callback = CallRecorder(log)
        start = perf_counter()
        for number, kwargs in enumerate(reports):
            ask(callback, f"c{number}")
            callback.log_success_event(kwargs)
        taken = perf_counter() - start
    assert (taken - written) / len(reports) < 500e-6  # measured: 30; a busy machine may take its time


def test_without_litellm(monkeypatch):
    """One sentence at the import of the callback."""
    integration._callback_class.cache_clear()
    monkeypatch.setitem(sys.modules, "litellm", None)
    monkeypatch.setitem(sys.modules, "litellm.integrations.custom_logger", None)
    with pytest.raises(MissingExtra, match=r"^litellm is not installed: pip install litellm$"):
        from sessionlog.integrations.litellm import SessionLogCallback  # noqa: F401 - its import is the test
    with pytest.raises(AttributeError, match="SessionLogCallbak"):
        _ = integration.SessionLogCallbak
    integration._callback_class.cache_clear()


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """The real library, and a callback that writes into a folder."""
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    library = pytest.importorskip("litellm")
    callback = integration.SessionLogCallback(directory=tmp_path, session_id="s")
    library.callbacks = [callback]
    yield library, callback
    library.logging_callback_manager._reset_all_callbacks()  # beside `callbacks` it keeps lists of its own


REAL = (pytest.mark.slow, pytest.mark.filterwarnings("default"))  # litellm has warnings of its own


def real(test):
    """Mark a test of the real library."""
    for mark in REAL:
        test = mark(test)
    return test


@real
def test_real_calls(recorded, tmp_path):
    """A tool's call and a stream, not awaited."""
    library, callback = recorded
    usage = completion(None, tool_calls=[CALLED])
    library.completion("gpt-4o", MESSAGES, mock_response=usage, tools=TOOLS)
    chunks = list(library.completion("gpt-4o", MESSAGES, mock_response="It is 5.", stream=True))
    assert len(chunks) > 1
    callback.close()
    events = events_of(tmp_path)
    assert [event.type for event in events] == [
        "session.start", "llm.request", "llm.response", "llm.request", "llm.response", "session.end",
    ] or [event.type for event in events].count("llm.response") == 2  # fmt: skip
    by_call = {one["call_id"]: one for one in of_type(tmp_path, "llm.response")}
    first, second = (by_call[one["call_id"]] for one in of_type(tmp_path, "llm.request"))
    assert [call["name"] for call in first["tool_calls"]] == ["add"]
    assert first["usage"] == {"input": 20, "output": 7, "cache_read": 80, "total": 107}
    assert second["content"] == "It is 5."
    assert second["usage"]["output"] > 0
    assert first["latency_ms"] >= 0
    assert "cost_usd" not in first
    assert aggregate_usage(tmp_path).totals.requests == 2


@real
def test_real_callbacks_beside_each_other(recorded, tmp_path):
    """A second callback records all calls, too."""
    library, callback = recorded
    with SessionLogger(tmp_path / "other", "t") as log, integration.SessionLogCallback(log) as other:
        library.callbacks = [callback, other]
        library.completion("gpt-4o", MESSAGES, mock_response="It is 5.")
    callback.close()
    for folder in (tmp_path, tmp_path / "other"):
        assert [one.get("content") for one in of_type(folder, "llm.response")] == ["It is 5."]


@real
def test_real_errors(recorded, tmp_path):
    """Of the provider, before the call, and within a stream; each is recorded once and reaches the host."""
    library, callback = recorded

    async def run():
        with pytest.raises(library.RateLimitError):
            await library.acompletion("gpt-4o", MESSAGES, mock_response="litellm.RateLimitError")
        with pytest.raises(library.BadRequestError):
            await library.acompletion("no-such-provider", MESSAGES)
        broken = await library.acompletion(
            "gpt-4o", MESSAGES, mock_response="Exception: mock_streaming_error", stream=True
        )
        with pytest.raises(library.exceptions.MidStreamFallbackError):
            await anext(broken)
        await asyncio.sleep(0.3)  # an error before the request is no open call
        await callback.aclose()

    asyncio.run(run())
    with pytest.raises(library.RateLimitError):
        library.completion("gpt-4o", MESSAGES, mock_response="litellm.RateLimitError")
    callback.close()
    errors = [one["error"].split(":")[0] for one in of_type(tmp_path, "llm.response")]
    assert sorted(errors) == ["BadRequestError", "MockException", "RateLimitError", "RateLimitError"]
    assert aggregate_usage(tmp_path).totals.failed_requests == 4


@real
def test_real_cancelled_stream(recorded, tmp_path):
    """The library does not report it: the response is written at the end, as cancelled."""
    library, callback = recorded

    async def run():
        async for _ in await library.acompletion("gpt-4o", MESSAGES, mock_response="It is 5.", stream=True):
            break
        await callback.aclose(0.3)

    asyncio.run(run())
    assert [one["partial"] for one in of_type(tmp_path, "llm.response")] == ["cancelled"]


@real
def test_real_calls_beside_each_other(recorded, tmp_path):
    """Twenty at once: each request has its response."""
    library, callback = recorded

    async def one(number):
        messages = [{"role": "user", "content": f"task {number}"}]
        answer = await library.acompletion("gpt-4o", messages, mock_response=completion(f"answer {number}"))
        return answer.choices[0].message.content

    async def run():
        answers = await asyncio.gather(*map(one, range(20)))
        await callback.aclose()
        return answers

    assert asyncio.run(run()) == [f"answer {number}" for number in range(20)]
    answers = {one["call_id"]: one["content"] for one in of_type(tmp_path, "llm.response")}
    for request in of_type(tmp_path, "llm.request"):
        assert answers[request["call_id"]] == request["messages"][0]["content"].replace("task", "answer")
    assert usage_of(tmp_path) == (20, 400, 1600, 140)


@real
def test_real_failure_of_the_integration(recorded, tmp_path, monkeypatch):
    """The host has its answer."""
    library, callback = recorded

    def broken(report):
        raise LookupError("no such field")

    monkeypatch.setattr(integration, "read_report", broken)
    answer = library.completion("gpt-4o", MESSAGES, mock_response="It is 5.")
    assert answer.choices[0].message.content == "It is 5."
    log = callback._runs.find(callback)
    callback.close()
    assert log.health().dropped_by == {"integration": 1}
