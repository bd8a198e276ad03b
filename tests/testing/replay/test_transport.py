"""A replay as a transport: SDKs over httpx and httpx2 get the recorded answers, in each format, whole and streamed."""

import asyncio
import json

import anthropic
import httpx
import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog import SessionLogger, aggregate_usage
from sessionlog.errors import ReplayMiss
from sessionlog.integrations.http import RecordingTransport
from sessionlog.messages.answers import reader_of
from sessionlog.messages.server_sent_events import EventStreamParser
from sessionlog.testing import ReplayModel
from tests.integrations import wire
from tests.profiles import examples
from tests.testing.replay.logs import ANSWER, ASKED, CHAT, SCHEMA, SYSTEM, session, user, write

LIBRARIES = [httpx, httpx2]
TOOLS = CHAT["tools"]
RESULT = '{"text": "print(1)", "lines": 1}'
FIRST = {"model": "gpt-5", "messages": CHAT["messages"][:2], "tools": TOOLS, "temperature": 0}


def openai_client(transport, **options):
    """A client of OpenAI's SDK, whose key is none."""
    return openai.OpenAI(api_key="-", http_client=httpx2.Client(transport=transport), **options)


def chat_loop(client, prompt=ASKED, *, stream=False):
    """An agent's loop on chat completions: it asks, runs the tools that are called, and returns the last answer."""
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": prompt}]
    pieces = []
    while True:
        arguments = {"model": "gpt-5", "messages": messages, "tools": TOOLS, "temperature": 0}
        if stream:
            with client.chat.completions.stream(**arguments) as events:
                pieces += [event.delta for event in events if event.type == "content.delta" and event.delta]
                answer = events.get_final_completion().choices[0].message
        else:
            answer = client.chat.completions.create(**arguments).choices[0].message
        if not answer.tool_calls:
            return answer.content, pieces
        messages.append(answer.model_dump(include={"role", "content", "tool_calls"}, mode="json"))
        for call in answer.tool_calls:
            assert json.loads(call.function.arguments) == {"path": "a.py"}
            messages.append({"role": "tool", "tool_call_id": call.id, "content": RESULT})


@pytest.fixture
def recorded(tmp_path):
    """The log of an OpenAI loop with a tool, recorded on the wire."""
    answers = [
        wire.CHAT,
        {
            **wire.CHAT,
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ANSWER}}],
        },
    ]
    left = iter(answers)
    server = httpx2.MockTransport(lambda _: httpx2.Response(200, json=next(left)))
    with SessionLogger(tmp_path, "fix") as log, openai_client(RecordingTransport(server, log)) as client:
        assert chat_loop(client) == (ANSWER, [])
    return tmp_path / "fix.jsonl"


@pytest.mark.parametrize("stream", [False, True])
def test_an_openai_loop_runs_again_from_its_log(recorded, stream):
    """With its tool, whole and streamed: a stream gives the words one by one."""
    with ReplayModel(recorded, strict_end=True) as replay:
        answer, pieces = chat_loop(openai_client(replay.transport()), stream=stream)
    assert answer == ANSWER
    assert pieces == (["Let ", "me ", "look.", "It ", "prints ", "1."] if stream else [])


def test_a_replay_can_be_recorded(recorded, tmp_path):
    """The new log has the same tokens as the old one."""
    with SessionLogger(tmp_path / "again", "s") as log:
        chat_loop(openai_client(RecordingTransport(ReplayModel(recorded).transport(), log)))
    one, other = (aggregate_usage(str(path)).totals for path in (recorded, tmp_path / "again"))
    assert (one.requests, one.input_tokens, one.cache_read_tokens, one.output_tokens) == (2, 80, 120, 40)
    assert (other.requests, other.total_tokens) == (one.requests, one.total_tokens)


def test_a_changed_prompt_fails_with_the_difference(recorded):
    """As an error that the SDK does not repeat; and again at the end, if the program has caught it."""
    replay = ReplayModel(recorded)
    with pytest.raises(openai.NotFoundError) as error:
        chat_loop(openai_client(replay.transport()), "What does b.py do?")
    difference = "messages[0].content: recorded 'What does a.py do?' · sent 'What does b.py do?'"
    assert difference in str(error.value)
    assert len(replay.misses) == 1
    with pytest.raises(ReplayMiss) as miss:
        replay.check()
    assert difference in str(miss.value).splitlines()[2]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("name", wire.FORMATS)
def test_every_format_is_answered(tmp_path, library, is_async, name):
    """Whole, as a stream of events, and as Gemini's list: text, reasoning, call and tokens, with its content type."""
    address, sent, _, is_stream = wire.FORMATS[name]
    kind = reader_of(address)
    request = kind.request_fields(sent)
    call = {"id": "call_1", "name": "read", "arguments": {"path": "a.py"}}
    message = {
        "role": "assistant",
        "content": [{"type": "thinking", "text": "A file."}, {"type": "text", "text": "Let me look."}],
        "tool_calls": [call],
    }
    given = {
        "content": "Let me look.",
        "message": message,
        "tool_calls": [call],
        "usage": {"input": 40, "cache_read": 60, "output": 20},
    }
    replay = ReplayModel(write(tmp_path, {"messages": request["messages"]}, given))

    async def ask():
        async with library.AsyncClient(transport=replay.transport()) as client:
            return await client.post(address, json=sent)

    if is_async:
        response = asyncio.run(ask())
    else:
        with library.Client(transport=replay.transport()) as client:
            response = client.post(address, json=sent)
    reader = kind()
    if is_stream:
        events = [*EventStreamParser().feed(response.content)]
    else:
        body = response.json()
        events = body if isinstance(body, list) else []
    for event in events:
        reader.feed(event)
    if not events:
        reader.read(response.json())
    assert response.headers["content-type"] == ("text/event-stream" if is_stream else "application/json")
    assert ("".join(reader.texts), "".join(reader.thoughts)) == ("Let me look.", "A file.")
    assert [one["name"] for one in reader.calls] == ["read"]


def test_the_sdk_of_anthropic_is_answered(recorded):
    """From a log of OpenAI's format; and a miss is readable in its error."""
    replay = ReplayModel(recorded, ignore=("parameters",))
    client = anthropic.Anthropic(api_key="-", http_client=httpx2.Client(transport=replay.transport()))
    asked = {
        "model": "gpt-5", "max_tokens": 99, "system": SYSTEM, "messages": [user(ASKED)],
        "tools": [{"name": "read", "description": "Read", "input_schema": SCHEMA}],
    }  # fmt: skip
    with client.messages.stream(**asked) as stream:
        assert "".join(stream.text_stream) == "Let me look."
        message = stream.get_final_message()
    assert (message.stop_reason, message.content[-1].input) == ("tool_use", {"path": "a.py"})
    assert (message.usage.input_tokens, message.usage.cache_read_input_tokens) == (40, 60)
    with pytest.raises(anthropic.NotFoundError, match=r"(?m)^  it is recording 1 of 2, which was given before"):
        client.messages.create(**asked)


def test_the_responses_of_openai_are_answered(recorded):
    """Also as a stream, whose events the SDK puts together."""
    client = openai_client(ReplayModel(recorded).transport())
    tools = [{"type": "function", **TOOLS[0]["function"]}]
    with client.responses.stream(model="gpt-5", instructions=SYSTEM, input=ASKED, tools=tools, temperature=0) as stream:
        first = [event.delta for event in stream if event.type == "response.output_text.delta"]
        called = stream.get_final_response().output[-1]
    assert (first, called.name, called.arguments) == (["Let ", "me ", "look."], "read", '{"path":"a.py"}')
    history = [
        user(ASKED),
        {"role": "assistant", "content": "Let me look."},
        called.model_dump(include={"type", "call_id", "name", "arguments"}),
    ]
    result = {"type": "function_call_output", "call_id": called.call_id, "output": RESULT}
    answer = client.responses.create(
        model="gpt-5", instructions=SYSTEM, input=[*history, result], tools=tools, temperature=0
    )
    assert (answer.output_text, answer.usage.total_tokens) == (ANSWER, 120)


def test_a_recorded_error_has_its_status(tmp_path):
    """SDKs repeat it as they did: the second attempt gets the second recording, without the usual pause."""
    path = write(tmp_path, [user("?")], {"error": "429 rate_limit_error: Slow down"}, [user("?")], "yes")
    client = openai_client(ReplayModel(path).transport(), timeout=5)
    assert client.chat.completions.create(model="m", messages=[user("?")]).choices[0].message.content == "yes"
    client = openai_client(ReplayModel(path).transport(), max_retries=0)
    with pytest.raises(openai.RateLimitError, match="Slow down") as error:
        client.chat.completions.create(model="m", messages=[user("?")])
    assert error.value.body["type"] == "rate_limit_error"


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("error", "raised", "status"),
    [
        ("ConnectError: no route", "ConnectError", None),
        ("ReadTimeout: too slow", "ReadTimeout", None),
        ("HTTPTransport: a class, and no error", None, 500),
        ("ModelHTTPError: status_code: 529, model_name: m, body: None", None, 529),
        ("something else", None, 500),
    ],
)
def test_a_recorded_error_of_the_connection_is_raised(tmp_path, library, error, raised, status):
    """As the class of that name of the client's library; any other error is a status."""
    transport = ReplayModel(write(tmp_path, [user("?")], {"error": error})).transport()
    with library.Client(transport=transport) as client:
        if raised is None:
            assert client.post(wire.FORMATS["chat"][0], json={"messages": [user("?")]}).status_code == status
        else:
            with pytest.raises(getattr(library, raised), match=error.partition(": ")[2]):
                client.post(wire.FORMATS["chat"][0], json={"messages": [user("?")]})


@pytest.mark.parametrize(
    "ask", [lambda client: client.models.list(), lambda client: client.embeddings.create(model="m", input="x")]
)
def test_a_request_that_is_none_to_a_model_is_a_miss(recorded, ask):
    """It is not sent either."""
    replay = ReplayModel(recorded)
    with pytest.raises(openai.NotFoundError, match="is no request to a model; nothing is sent"):
        ask(openai_client(replay.transport()))
    with pytest.raises(ReplayMiss, match=r"https://api\.openai\.com/v1/"):
        replay.check()


def test_a_miss_shows_no_key_of_the_address(recorded):
    """It ends in the logs of a CI; Gemini's keys may be a query."""
    replay = ReplayModel(recorded)
    with httpx2.Client(transport=replay.transport()) as client:
        client.post("https://u:secret@g.example:8443/v1beta/models/gemini-3-pro:countTokens?key=secret", json={})
    [miss] = replay.misses
    assert str(miss).startswith("POST https://g.example:8443/v1beta/models/gemini-3-pro:countTokens is no request")


def test_a_body_that_is_no_object_is_a_miss(tmp_path):
    """As any request that was not recorded."""
    replay = ReplayModel(session(tmp_path))
    with httpx2.Client(transport=replay.transport()) as client:
        assert client.post(wire.FORMATS["chat"][0], content=b"[1]").status_code == 404
        assert client.post(wire.FORMATS["chat"][0], content=iter([b'{"messages":', b"[]}"])).status_code == 404
    assert len(replay.misses) == 2


TEXTS = st.sampled_from(["user", "assistant", "tool", "text", "\ud800", "a", "", "functionDeclarations", "{"])
KEYS = st.sampled_from([
    "messages", "input", "contents", "tools", "model", "system", "role", "content", "parts", "text", "type", "name", "id",
    "function", "arguments", "tool_calls", "call_id", "functionCall", "functionDeclarations", "generationConfig", "stop",
    "temperature", "stream", "stream_options",
])  # fmt: skip
BODIES = st.dictionaries(
    KEYS,
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
        max_leaves=20,
    ),
    max_size=5,
)


@pytest.fixture(scope="module")
def small_log(tmp_path_factory):
    """The log of the agent's session."""
    return session(tmp_path_factory.mktemp("log"))


@examples(200)
@given(name=st.sampled_from([*wire.FORMATS]), body=BODIES)
def test_no_body_breaks_the_transport(small_log, name, body):
    """Whatever the code under test sends is answered, or a miss; the text of a miss can be encoded."""
    transport = ReplayModel(small_log).transport()
    request = httpx2.Request("POST", wire.FORMATS[name][0], content=json.dumps(body).encode())
    assert transport.handle_request(request).status_code in {200, 404}


def test_a_fork_continues_with_a_transport(recorded):
    """Sync and async."""

    def live(request):
        return httpx2.Response(
            200,
            json={
                **wire.CHAT,
                "choices": [
                    {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Live."}}
                ],
            },
        )

    def forked():
        return ReplayModel(recorded).fork(at=2, model=httpx2.MockTransport(live)).transport()

    assert chat_loop(openai_client(forked())) == ("Live.", [])

    async def ask():
        async with openai.AsyncOpenAI(api_key="-", http_client=httpx2.AsyncClient(transport=forked())) as client:
            first = await client.chat.completions.create(**FIRST)
            return first, await client.chat.completions.create(model="m", messages=[user("?")])

    first, second = asyncio.run(ask())
    assert (first.choices[0].message.content, second.choices[0].message.content) == ("Let me look.", "Live.")
