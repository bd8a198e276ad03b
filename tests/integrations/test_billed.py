"""What is billed beside a response's tokens reaches the log from every library, and the reports from the log."""

import json
from types import SimpleNamespace

import httpx
import pytest
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration
from openai.types.responses import Response as OpenAIResponse
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.usage import RequestUsage

from sessionlog import SessionLogger
from sessionlog.integrations.http import RecordingTransport
from sessionlog.integrations.langchain import _response_fields as langchain_fields
from sessionlog.integrations.litellm import read_report
from sessionlog.integrations.openai_agents import _response_fields as agents_fields
from sessionlog.integrations.pydantic_ai import response_fields
from sessionlog.sources.native import SOURCE
from tests.integrations import wire

ADVISED = {"type": "advisor_message", "model": "claude-opus-4-7", "input_tokens": 500, "output_tokens": 80}
COMPACTED = {"type": "compaction", "input_tokens": 180, "output_tokens": 35}
SERVED = {"service_tier": "priority", "inference_geo": "us", "server_tool_use": {"web_search_requests": 2}}
BILLED = {**SERVED, "iterations": [COMPACTED, ADVISED, {"type": "message", "input_tokens": 40, "output_tokens": 20}]}
MESSAGE = {**wire.MESSAGE, "usage": {**wire.MESSAGE_USAGE, **BILLED}}
EVENTS = [
    {**event, "usage": {"output_tokens": 20, **BILLED}} if event["type"] == "message_delta" else event
    for event in wire.MESSAGE_EVENTS
]
RESPONSE = {**wire.RESPONSE, "service_tier": "flex", "tool_usage": {"web_search": {"num_requests": 3}}}
CHAT = {**wire.CHAT, "service_tier": "flex"}
ALL = [("compaction", 215, "priority", "us", 0), ("advisor", 580, "priority", "us", 0), ("", 127, "priority", "us", 2)]


def records(path):
    """What a log has: kind, tokens, tier, region and searches of each response."""
    [session] = SOURCE.scan(str(path), None).sessions
    return [(one.kind, one.usage.total, one.service_tier, one.region, one.searches) for one in session.records]


def logged(folder, fields):
    """The same of a response with these fields."""
    with SessionLogger(folder, provider="p", model="m") as log:
        log.llm_response(**fields)
    return records(log.path)


@pytest.mark.parametrize(
    ("address", "answer", "found"),
    [
        ("https://api.anthropic.com/v1/messages", MESSAGE, ALL),
        ("https://api.anthropic.com/v1/messages", EVENTS, ALL),
        ("https://api.openai.com/v1/responses", RESPONSE, [("", 120, "flex", "", 3)]),
        ("https://api.openai.com/v1/chat/completions", CHAT, [("", 120, "flex", "", 0)]),
    ],
    ids=["anthropic", "anthropic stream", "responses", "chat"],
)
def test_what_passes_a_client_or_the_proxy(tmp_path, address, answer, found):
    """The end of the session says what all of it used, and no rest is left beside it."""
    is_stream = isinstance(answer, list)
    body = (
        b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in answer)
        if is_stream
        else json.dumps(answer).encode()
    )
    kind = "text/event-stream" if is_stream else "application/json"
    inner = httpx.MockTransport(lambda _: httpx.Response(200, headers={"content-type": kind}, content=body))
    with SessionLogger(tmp_path) as log, httpx.Client(transport=RecordingTransport(inner, log)) as client:
        client.post(address, json={"model": "m", "messages": []})
    assert records(log.path) == found
    assert log.totals.usage.total == sum(total for _, total, *_ in found)


def test_pydantic_ai(tmp_path):
    """Its counts include those of compactions; an advisor's are beside them, and its model is not known."""
    details = {"web_search_requests": 2, "compaction_iterations": 1, "compaction_input_tokens": 180}
    details |= {"advisor_iterations": 1, "advisor_input_tokens": 500, "advisor_output_tokens": 80}
    response = ModelResponse(
        parts=[TextPart("x")], provider_details={"service_tier": "priority", "speed": "fast"},
        usage=RequestUsage(input_tokens=220, output_tokens=20, details=details),
    )  # fmt: skip
    found = logged(tmp_path, response_fields(response, [{"content": "x"}]))
    assert found == [("advisor", 580, "priority", "", 0), ("", 240, "priority", "", 2)]


def test_langchain(tmp_path):
    """Anthropic's usage object and OpenAI's tier are in the metadata of the response."""
    used = {"input_tokens": 107, "output_tokens": 20, "total_tokens": 127}
    for metadata, found in (({"usage": BILLED}, ALL), ({"service_tier": "flex"}, [("", 127, "flex", "", 0)])):
        message = AIMessage("x", usage_metadata=used, response_metadata=metadata)
        assert logged(tmp_path, langchain_fields(ChatGeneration(message=message), {}, {})) == found


def test_litellm(tmp_path):
    """Its usage object has Anthropic's fields; the tier of OpenAI's is in the body."""
    usage = {"prompt_tokens": 107, "completion_tokens": 20}
    report = {"status": "success", "model": "m", "response": {**CHAT, "usage": usage}}
    found = logged(tmp_path, read_report(report | {"metadata": {"usage_object": usage | BILLED}}))
    assert [one[:2] for one in found] == [one[:2] for one in ALL]
    assert (found[-1][2:], logged(tmp_path, read_report(report | {"metadata": {"usage_object": usage}}))[0][2]) == (
        ("flex", "us", 2), "flex",
    )  # fmt: skip


def test_openai_agents(tmp_path):
    """The tier that served, and the billed searches, are fields of the response."""
    span = SimpleNamespace(type="response", response=OpenAIResponse.model_construct(**RESPONSE), usage=None)
    assert logged(tmp_path, agents_fields(span)) == [("", 120, "flex", "", 3)]


def test_usage_objects_inside_a_dictionary(tmp_path):
    """As `dict(usage)` leaves them."""
    usage = {name: value for name, value in MESSAGE["usage"].items() if name != "iterations"}
    usage["iterations"] = [SimpleNamespace(**one) for one in BILLED["iterations"]]
    usage["server_tool_use"] = SimpleNamespace(**BILLED["server_tool_use"])
    assert logged(tmp_path, {"content": "x", "usage": usage}) == ALL
