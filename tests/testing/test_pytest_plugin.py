"""The pytest plugin, in runs of pytest within this one: a test replays its log, and records it anew when asked to."""

import asyncio
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import httpx2
import openai  # noqa: F401 - a run within this one forgets what it imports, and each would import it again
import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

from sessionlog import check_logs, read_events
from sessionlog.errors import InvalidHistory, InvalidSessionId
from sessionlog.testing import ReplayModel
from sessionlog.testing.replay.pydantic_ai import RecordedModel  # noqa: F401 - as openai
from sessionlog.testing.replay.recorder import Recorder
from tests.integrations import wire
from tests.testing.replay.logs import session, user, write

pytest_plugins = ["pytester"]

AGENT = """
import asyncio
import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

def answer(messages, info):
    if len(messages) == 1:
        return ModelResponse(parts=[ToolCallPart("add", {"a": 1, "b": 2}, "c1")])
    return ModelResponse(parts=[TextPart(f"It is {messages[-1].parts[0].content}.")])

@pytest.mark.sessionlog("runs/sum.jsonl"OPTIONS)
def test_the_agent_adds(replay_model):
    agent = Agent(replay_model.pydantic_ai(MODEL), instructions="Use the tool.")

    @agent.tool_plain
    def add(a: int, b: int) -> int:
        return a + b

    assert asyncio.run(agent.run("1 + 2?")).output == EXPECTED
"""
CLIENT = """
import httpx2
import openai
import pytest
from tests.integrations import wire

@pytest.mark.sessionlog("runs/look.jsonl")
def test_the_client_looks(replay_model):
    server = httpx2.MockTransport(lambda _: httpx2.Response(200, json=wire.CHAT))
    client = openai.OpenAI(api_key="-", http_client=httpx2.Client(transport=replay_model.transport(server)))
    for content in ["What does a.py do?", "And again?"]:
        answer = client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": content}])
        assert answer.choices[0].message.content == "Let me look."
"""


@pytest.fixture
def run(pytester, monkeypatch):
    """Run pytest on a test file with this plugin and no other."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def runs(code, *arguments, **names):
        for name, value in names.items():
            code = code.replace(name, value)
        pytester.makepyfile(code)
        options = ["-p", "sessionlog.testing.pytest_plugin", "-p", "no:cacheprovider", "--strict-markers"]
        return pytester.runpytest_inprocess(*options, *arguments)

    return runs


def agent_test(model="FunctionModel(answer, model_name='double')", expected="'It is 3.'", options=""):
    """The names in `AGENT`."""
    return {"MODEL": model, "EXPECTED": expected, "OPTIONS": options}


def test_a_test_records_its_log_and_replays_it(run, pytester):
    """With the real model once; then its name is enough, in a process that has no other."""
    run(AGENT, "--sessionlog-record", **agent_test()).assert_outcomes(passed=1)
    log = pytester.path / "runs" / "sum.jsonl"
    assert [event.type for event in read_events(log)] == [
        "session.start", *["llm.request", "llm.response"] * 2, "session.end",
    ]  # fmt: skip
    assert [check.damage for check in check_logs(log)] == [()]
    before = log.read_bytes()
    run(AGENT, **agent_test(model="'test:double'")).assert_outcomes(passed=1)
    run(AGENT, **agent_test(model="")).assert_outcomes(passed=1)
    assert log.read_bytes() == before


def test_a_client_s_requests_are_recorded_and_replayed(run, pytester):
    """On the wire; the transport is not used again."""
    run(CLIENT, "--sessionlog-record").assert_outcomes(passed=1)
    run(CLIENT.replace("200, json=wire.CHAT", "500")).assert_outcomes(passed=1)
    assert len(ReplayModel(pytester.path / "runs" / "look.jsonl").recordings) == 2


def test_a_changed_prompt_fails_the_test(run):
    """With the difference, and how to record it anew."""
    run(AGENT, "--sessionlog-record", **agent_test())
    result = run(AGENT.replace("1 + 2?", "2 + 2?"), **agent_test(model=""))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([
        "E*ReplayMiss: *sum.jsonl has no recording of this request: '2 + 2?'",
        "E*messages[[]0].content: recorded '1 + 2?' · sent '2 + 2?'",
        "E*if the change is meant, record the log again (pytest --sessionlog-record)",
    ])  # fmt: skip


def test_a_log_is_replaced_only_if_the_test_passes(run, pytester):
    """One that fails has perhaps recorded half a session; nothing of it is left anywhere."""
    run(AGENT, "--sessionlog-record", **agent_test())
    log = pytester.path / "runs" / "sum.jsonl"
    before = log.read_bytes()
    run(AGENT, "--sessionlog-record", **agent_test(expected="'four'")).assert_outcomes(failed=1)
    assert log.read_bytes() == before
    assert [path.name for path in log.parent.iterdir()] == ["sum.jsonl"]
    run(AGENT, "--sessionlog-record", **agent_test()).assert_outcomes(passed=1)
    assert log.read_bytes() != before


def test_a_missing_log_says_how_it_is_made(run):
    """The command with the test's name."""
    result = run(AGENT, **agent_test())
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([
        "*sum.jsonl is missing; record it with: pytest --sessionlog-record 'test_a_missing*::test_the_agent_adds'"
    ])  # fmt: skip


@pytest.mark.parametrize("mark", ["", "@pytest.mark.sessionlog\n", "@pytest.mark.sessionlog('a', 'b')\n"])
def test_the_fixture_needs_one_log(run, mark):
    """Which the marker names."""
    result = run(f"import pytest\n{mark}def test_it(replay_model): pass\n")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(['*mark the test with its log: @pytest.mark.sessionlog("runs/NAME.jsonl")*'])


def test_a_miss_that_the_code_has_caught_fails_the_test(run, pytester):
    """At its end."""
    session(pytester.path)
    code = """
    import contextlib, pytest
    @pytest.mark.sessionlog("s.jsonl")
    def test_it(replay_model):
        with contextlib.suppress(Exception):
            replay_model("something else")
    """
    result = run(code)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["E*ReplayMiss: *no recording of this request: 'something else'"])


def test_a_failed_test_shows_the_miss_that_its_code_has_caught(run, pytester):
    """An agent may answer without its model, and the assertion alone shows no reason; an error that shows it is enough."""
    session(pytester.path)
    code = """
    import contextlib, pytest
    @pytest.mark.sessionlog("s.jsonl")
    def test_it(replay_model):
        with CONTEXT:
            replay_model("something else")
        assert 0
    """
    result = run(code, CONTEXT="contextlib.suppress(Exception)")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*request without a recording*", "*no recording of this request: 'something else'"])
    result = run(code, CONTEXT="contextlib.nullcontext()")
    result.stdout.fnmatch_lines(["E*no recording of this request: 'something else'"])
    result.stdout.no_fnmatch_line("*request without a recording*")


def test_a_name_that_is_no_session_s_leaves_nothing(tmp_path, monkeypatch):
    """The name of the file is the session's id."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with pytest.raises(InvalidSessionId, match="'with space': not a safe file name"):
        Recorder(tmp_path / "with space.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_options_are_those_of_the_replay(run, pytester):
    """As `strict_end`: recordings that are not asked for fail the test."""
    write(pytester.path, [user("?")], "yes", [user("!")], "no")
    code = """
    import pytest
    @pytest.mark.sessionlog("s.jsonl", by="order", strict_end=STRICT)
    def test_it(replay_model):
        assert replay_model("whatever").message.text == "yes"
    """
    run(code, STRICT="False").assert_outcomes(passed=1)
    result = run(code, STRICT="True")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["E*1 of 2 recordings were not asked for", "E*2: '!'"])


def test_two_tests_do_not_record_into_one_log(run, pytester):
    """The second would replace what the first one needs."""
    code = CLIENT + CLIENT[CLIENT.index("@pytest") :].replace("test_the_client_looks", "test_again")
    result = run(code, "--sessionlog-record")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["*look.jsonl is recorded by *::test_the_client_looks already; give this test a log of its own"]
    )


def test_an_error_of_the_model_is_recorded(run, pytester):
    """A test may expect it."""
    code = """
    import asyncio, pytest
    from pydantic_ai import Agent
    from pydantic_ai.exceptions import ModelHTTPError
    from pydantic_ai.models.function import FunctionModel

    def fail(messages, info):
        raise ModelHTTPError(503, "double", body="busy")

    async def fail_streamed(messages, info):
        yield "Half an "
        raise ModelHTTPError(503, "double", body="busy")

    async def stream(agent):
        async with agent.run_stream("?") as result:
            await result.get_output()

    @pytest.mark.sessionlog("busy.jsonl")
    def test_it(replay_model):
        agent = Agent(replay_model.pydantic_ai(FunctionModel(fail, stream_function=fail_streamed, model_name="double")))
        with pytest.raises(ModelHTTPError, match="503"):
            asyncio.run(agent.run("?"))
        with pytest.raises(ModelHTTPError, match="503"):
            asyncio.run(stream(agent))
    """
    run(code, "--sessionlog-record").assert_outcomes(passed=1)
    run(code).assert_outcomes(passed=1)
    answers = [event.data for event in read_events(pytester.path / "busy.jsonl") if event.type == "llm.response"]
    assert [one.get("content") for one in answers] == [None, "Half an "]


def test_a_stream_of_a_model_is_recorded(tmp_path):
    """Whole, when it ends."""

    async def answer(messages, info):
        yield "It "
        yield "streams."

    async def stream(agent):
        async with agent.run_stream("?") as result:
            return await result.get_output()

    recorder = Recorder(tmp_path / "new" / "s.jsonl")
    model = recorder.pydantic_ai(FunctionModel(stream_function=answer, model_name="double"))
    assert asyncio.run(stream(Agent(model))) == "It streams."
    recorder.save()
    recorder.discard()
    replay = ReplayModel(tmp_path / "new" / "s.jsonl")
    assert asyncio.run(stream(Agent(replay.pydantic_ai()))) == "It streams."


def test_requests_go_through_the_library_s_own_transport(tmp_path, monkeypatch):
    """If no other is given: that of the client's library, sync or async."""
    server = httpx2.MockTransport(lambda _: httpx2.Response(200, json=wire.CHAT))
    monkeypatch.setattr(httpx2, "HTTPTransport", lambda: server)
    monkeypatch.setattr(httpx2, "AsyncHTTPTransport", lambda: server)
    recorder = Recorder(tmp_path / "s.jsonl")
    address, body = wire.FORMATS["chat"][:2]

    async def ask():
        async with httpx2.AsyncClient(transport=recorder.transport()) as client:
            return (await client.post(address, json=body)).json()["id"]

    with httpx2.Client(transport=recorder.transport()) as client:
        assert client.post(address, json=body).json()["id"] == asyncio.run(ask()) == "chatcmpl-1"
    recorder.save()
    recorder.discard()
    assert len(ReplayModel(tmp_path / "s.jsonl").recordings) == 2


def test_requests_that_overlap_are_recorded_with_their_own_answers(tmp_path):
    """The first one is answered last; models and clients alike."""
    waits = {"first": asyncio.Event(), "second": asyncio.Event()}

    async def reply(prompt):
        waits[prompt].set()
        await waits["second"].wait()
        for _ in range(5 if prompt == "first" else 0):
            await asyncio.sleep(0)
        return f"to the {prompt}"

    async def serve(request):
        text = await reply(json.loads(request.content)["messages"][0]["content"])
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        return httpx2.Response(200, json={**wire.CHAT, "choices": [choice]})

    async def answer(messages, info):
        return ModelResponse(parts=[TextPart(await reply(messages[0].parts[0].content))])

    recorder = Recorder(tmp_path / "s.jsonl")
    agent = Agent(recorder.pydantic_ai(FunctionModel(answer, model_name="double")))

    async def post(client, prompt):
        return await client.post(wire.FORMATS["chat"][0], json={"model": "gpt-5", "messages": [user(prompt)]})

    async def ask():
        await asyncio.gather(*(agent.run(prompt) for prompt in waits))
        waits.update({name: asyncio.Event() for name in waits})
        async with httpx2.AsyncClient(transport=recorder.transport(httpx2.MockTransport(serve))) as client:
            await asyncio.gather(*(post(client, prompt) for prompt in waits))

    asyncio.run(ask())
    recorder.save()
    recorder.discard()
    recordings = ReplayModel(tmp_path / "s.jsonl").recordings
    assert [(one.request.model, one.prompt, one.answer.text) for one in recordings] == [
        ("double", "second", "to the second"), ("double", "first", "to the first"),
        ("gpt-5", "second", "to the second"), ("gpt-5", "first", "to the first"),
    ]  # fmt: skip


@pytest.mark.parametrize("more", [{"temperature": 0}, {"tools": [{"type": "function", "function": {"name": "rm"}}]}])
def test_a_part_that_no_recorded_request_had_is_a_difference(tmp_path, more):
    """The log holds all parts of its requests: the first tool that an agent gets does not pass unseen."""
    recorder = Recorder(tmp_path / "s.jsonl")
    body = {"model": "gpt-5", "messages": [user("hi")]}
    live = httpx2.MockTransport(lambda _: httpx2.Response(200, json=wire.CHAT))
    with httpx2.Client(transport=recorder.transport(live)) as client:
        client.post(wire.FORMATS["chat"][0], json=body)
    recorder.save()
    recorder.discard()
    for sent, status in ((body, 200), (body | more, 404)):
        with httpx2.Client(transport=ReplayModel(tmp_path / "s.jsonl").transport()) as client:
            assert client.post(wire.FORMATS["chat"][0], json=sent).status_code == status


def test_a_model_s_own_settings_are_recorded_and_replayed(tmp_path):
    """The agent adds them to each request, also where the same model is replayed."""
    recorder = Recorder(tmp_path / "s.jsonl")
    model = FunctionModel(
        lambda messages, info: ModelResponse(parts=[TextPart("Yes.")]),
        model_name="double",
        settings={"temperature": 0.5},
    )
    assert asyncio.run(Agent(recorder.pydantic_ai(model)).run("?")).output == "Yes."
    recorder.save()
    recorder.discard()
    replay = ReplayModel(tmp_path / "s.jsonl")
    assert asyncio.run(Agent(replay.pydantic_ai(model)).run("?")).output == "Yes."


def test_what_cannot_be_recorded_is_refused(tmp_path):
    """A model without a name, a function, and a session without an answer."""
    recorder = Recorder(tmp_path / "s.jsonl")
    with pytest.raises(TypeError, match="name the real model"):
        recorder.pydantic_ai()
    with pytest.raises(TypeError, match="record it with a SessionLogger"):
        recorder([user("?")])
    recorder.log.llm_request([user("?")])
    with pytest.raises(InvalidHistory, match=r"/s\.jsonl: no answer of a model"):
        recorder.save()
    recorder.discard()
    assert not (tmp_path / "s.jsonl").exists()
    assert not Path(recorder.log.path).exists()


def test_a_project_that_does_not_use_it_pays_next_to_nothing():
    """Each start of pytest imports the plugin: it loads nothing of ours but the names of lazy imports."""
    code = (
        "import sys, pytest; bare = set(sys.modules); import sessionlog.testing.pytest_plugin\n"
        "print(*sorted(set(sys.modules) - bare))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == [
        "sessionlog", "sessionlog._version", "sessionlog.lazy_imports", "sessionlog.testing",
        "sessionlog.testing.pytest_plugin",
    ]  # fmt: skip


def test_an_old_pytest_starts_with_the_plugin():
    """Debian 12 has pluggy 1.0, whose marker of hooks knows no `wrapper`; each run of pytest there loads the plugin."""
    code = (
        "import pytest\n"
        "def hookimpl(function=None, hookwrapper=False, optionalhook=False, tryfirst=False, trylast=False):\n"
        "    return function or (lambda hook: hook)\n"
        "pytest.hookimpl = hookimpl\n"
        "import sessionlog.testing.pytest_plugin"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)


def test_the_plugin_is_declared():
    """Under the name by which it is turned off: -p no:sessionlog."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"sessionlog": "sessionlog.testing.pytest_plugin"}
