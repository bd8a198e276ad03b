"""`integrations.langchain`: runs of the real library, with a chat model of the test, become sessions."""

import asyncio
import threading

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel, FakeListLLM
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import ToolException, tool

from sessionlog import SessionLogger, aggregate_usage, check_logs, read_events
from sessionlog.cli import main
from sessionlog.integrations import langchain as integration
from sessionlog.integrations.langchain import SessionLogHandler, read_tokens
from sessionlog.messages.read import read_entries

USAGE = {
    "input_tokens": 120,
    "output_tokens": 30,
    "total_tokens": 150,
    "input_token_details": {"cache_read": 100, "cache_creation": 5},
    "output_token_details": {"reasoning": 10},
}
"""15 tokens of input that touched no cache."""


def answer_of(text, *, calls=(), usage=USAGE):
    """A model's answer, as the packages of providers make it."""
    return AIMessage(
        text,
        tool_calls=[{"name": name, "args": args, "id": call_id} for name, args, call_id in calls],
        usage_metadata=usage,
        response_metadata={"model_name": "gpt-4o-2024-08-06", "finish_reason": "tool_calls" if calls else "stop"},
    )


class Scripted(BaseChatModel):
    """A chat model that answers by a function of the messages; it streams by words, and errors are raised."""

    reply: object
    model: str = "gpt-4o"
    pause: object = None

    @property
    def _llm_type(self):
        return "scripted"

    def _get_ls_params(self, stop=None, **kwargs):
        return super()._get_ls_params(stop=stop, **kwargs) | {"ls_provider": "openai"}

    def _answer(self, messages):
        made = self.reply(messages)
        if isinstance(made, BaseException):
            raise made
        return made

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages))])

    async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
        if self.pause is not None:
            await self.pause()
        return self._generate(messages)

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        message = self._answer(messages)
        words = message.content.split(" ")
        for word in words[:-1]:
            if word == "BREAK":
                raise ConnectionError("lost the model")
            yield ChatGenerationChunk(message=AIMessageChunk(word + " "))
        last = AIMessageChunk(
            words[-1],
            tool_calls=message.tool_calls,
            usage_metadata=message.usage_metadata,
            response_metadata=message.response_metadata,
        )
        yield ChatGenerationChunk(message=last)


def scripted(*replies, **more):
    """A model with these answers, one after the other."""
    rest = iter(replies)
    return Scripted(reply=lambda _: next(rest), **more)


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    if city == "Atlantis":
        raise LookupError("no such city")
    return f"rain in {city}"


def agent(model):
    """The shortest agent: it asks the model until it calls no tool."""

    def loop(question, config):
        messages = [SystemMessage("Be brief."), HumanMessage(question)]
        while True:
            answer = model.bind(tools=[{"type": "function", "function": {"name": "weather"}}]).invoke(messages, config)
            messages.append(answer)
            if not answer.tool_calls:
                return answer.content
            for call in answer.tool_calls:
                try:
                    messages.append(weather.invoke({**call, "type": "tool_call"}, config))
                except LookupError as error:
                    messages.append(ToolMessage(f"error: {error}", tool_call_id=call["id"], status="error"))

    return RunnableLambda(loop)


def logged(folder):
    """The payloads of the only log by type, `session.start` and so on, in their order."""
    [path] = folder.glob("*.jsonl")
    return [(event.type, event.data) for event in read_events(path)]


def of_type(folder, kind):
    """The payloads of one type in the only log."""
    return [data for found, data in logged(folder) if found == kind]


def assert_sound(folder):
    """`check` finds nothing at all."""
    for checked in check_logs(folder):
        assert (checked.damage, checked.notes) == ((), ())


def counted(folder):
    """(requests, failed, input, cache read, cache write, output, reasoning) of a folder."""
    row = aggregate_usage(folder).totals
    return (
        row.requests, row.failed_requests, row.input_tokens, row.cache_read_tokens, row.cache_write_tokens,
        row.output_tokens, row.reasoning_tokens,
    )  # fmt: skip


def test_a_run_with_a_tool(tmp_path, capsys):
    """The root run is the session; the prompt, the models, the tool and the result are in it, and it reads well."""
    model = scripted(answer_of("", calls=[("weather", {"city": "Bonn"}, "c1")]), answer_of("Take an umbrella."))
    result = agent(model).invoke("Weather in Bonn?", {"callbacks": [SessionLogHandler(directory=tmp_path)]})
    assert result == "Take an umbrella."
    assert [kind for kind, _ in logged(tmp_path)] == [
        "session.start", "llm.request", "llm.response", "tool.call", "llm.request", "llm.response", "session.end",
    ]  # fmt: skip
    [start], [end], [call] = (of_type(tmp_path, kind) for kind in ("session.start", "session.end", "tool.call"))
    assert start["prompt"] == "Weather in Bonn?"
    assert (end["status"], end["output"]) == ("success", "Take an umbrella.")
    assert (call["tool"], call["input"], call["output"], call["id"]) == (
        "weather", {"city": "Bonn"}, "rain in Bonn", "c1",
    )  # fmt: skip
    assert call["duration_ms"] >= 0
    first, second = of_type(tmp_path, "llm.response")
    assert first["tool_calls"] == [{"id": "c1", "name": "weather", "arguments": {"city": "Bonn"}}]
    assert (first["model"], first["provider"], first["finish_reason"]) == ("gpt-4o-2024-08-06", "openai", "tool_calls")
    assert (second["content"], second["finish_reason"]) == ("Take an umbrella.", "stop")
    assert second["latency_ms"] >= 0
    request = of_type(tmp_path, "llm.request")[1]
    assert (request["model"], request["tools"][0]["function"]["name"]) == ("gpt-4o", "weather")
    messages = [message for entry in read_entries(request["messages"]) for message in entry.messages]
    assert [message.role for message in messages] == ["system", "user", "assistant", "tool"]
    assert messages[2].tool_calls[0].id == messages[3].tool_call_id == "c1"
    assert_sound(tmp_path)
    assert counted(tmp_path) == (2, 0, 30, 200, 10, 60, 20)

    assert main(["replay", str(next(tmp_path.glob("*.jsonl"))), "--plain"]) == 0
    shown = capsys.readouterr().out
    for line in ("Weather in Bonn?", "weather", "rain in Bonn", "Take an umbrella."):
        assert line in shown


def test_a_model_alone_is_a_root_run(tmp_path):
    """Its model and provider are in session.start."""
    model = scripted(answer_of("Hello."))
    model.invoke("Hi", config={"callbacks": [SessionLogHandler(directory=tmp_path)]})
    [start], [end] = of_type(tmp_path, "session.start"), of_type(tmp_path, "session.end")
    assert (start["prompt"], start["model"], start["provider"]) == ("Hi", "gpt-4o", "openai")
    assert (end["status"], end["output"]) == ("success", "Hello.")
    assert_sound(tmp_path)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_stream(tmp_path, is_async):
    """The merged chunks are the response, with the usage of the last one."""
    model = scripted(answer_of("It rains all day.", calls=[("weather", {"city": "Bonn"}, "c1")]))
    config = {"callbacks": [SessionLogHandler(directory=tmp_path)]}

    async def read():
        return [chunk.text async for chunk in model.astream("Hi", config)]

    texts = asyncio.run(read()) if is_async else [chunk.text for chunk in model.stream("Hi", config)]
    assert "".join(texts) == "It rains all day."
    [response] = of_type(tmp_path, "llm.response")
    assert (response["content"], response["model"]) == ("It rains all day.", "gpt-4o-2024-08-06")
    assert response["tool_calls"] == [{"id": "c1", "name": "weather", "arguments": {"city": "Bonn"}}]
    assert counted(tmp_path) == (1, 0, 15, 100, 5, 30, 10)
    assert_sound(tmp_path)


def test_an_error_of_the_model_is_the_hosts(tmp_path):
    """It passes unchanged, and is in the response and in the end."""
    error = ConnectionError("lost the model")
    with pytest.raises(ConnectionError) as caught:
        scripted(error).invoke("Hi", {"callbacks": [SessionLogHandler(directory=tmp_path)]})
    assert caught.value is error
    [response], [end] = of_type(tmp_path, "llm.response"), of_type(tmp_path, "session.end")
    assert "lost the model" in response["error"]
    assert (end["status"], "lost the model" in end["error"]) == ("error", True)
    assert counted(tmp_path)[:2] == (1, 1)
    assert_sound(tmp_path)


def test_a_stream_that_breaks_keeps_its_text(tmp_path):
    """The response has both, and is marked."""
    handler = SessionLogHandler(directory=tmp_path)
    with pytest.raises(ConnectionError):
        list(scripted(answer_of("It rains BREAK .")).stream("Hi", {"callbacks": [handler]}))
    [response] = of_type(tmp_path, "llm.response")
    assert (response["content"], response["partial"]) == ("It rains ", "failed")
    assert "lost the model" in response["error"]
    assert_sound(tmp_path)


def test_a_model_that_streams_inside_invoke_keeps_its_text_as_well(tmp_path):
    """LangChain reports only the error there; the chunks were kept."""
    handler = SessionLogHandler(directory=tmp_path)
    with pytest.raises(ConnectionError):
        scripted(answer_of("It rains BREAK .")).invoke("Hi", {"callbacks": [handler]}, stream=True)
    [response] = of_type(tmp_path, "llm.response")
    assert (response["content"], response["partial"]) == ("It rains ", "failed")
    assert_sound(tmp_path)


def test_retries_are_requests(tmp_path):
    """`with_retry` runs the model again: each attempt is in the log, and the session succeeds."""
    model = scripted(ConnectionError("lost"), answer_of("Hello.")).with_retry(wait_exponential_jitter=False)
    assert model.invoke("Hi", {"callbacks": [SessionLogHandler(directory=tmp_path)]}).content == "Hello."
    assert ["error" in data for data in of_type(tmp_path, "llm.response")] == [True, False]
    assert of_type(tmp_path, "session.end")[0]["status"] == "success"
    assert counted(tmp_path) == (2, 1, 15, 100, 5, 30, 10)
    assert_sound(tmp_path)


def test_an_error_of_a_tool(tmp_path):
    """It is in tool.call; the agent goes on."""
    model = scripted(answer_of("", calls=[("weather", {"city": "Atlantis"}, "c1")]), answer_of("It does not exist."))
    agent(model).invoke("Weather in Atlantis?", {"callbacks": [SessionLogHandler(directory=tmp_path)]})
    [call] = of_type(tmp_path, "tool.call")
    assert ("no such city" in call["error"], call.get("output"), call["id"]) == (True, None, "c1")
    assert of_type(tmp_path, "session.end")[0]["status"] == "success"
    assert of_type(tmp_path, "llm.request")[1]["messages"][-1]["is_error"] is True
    assert_sound(tmp_path)


def test_an_error_that_a_tool_handles_itself(tmp_path):
    """LangChain reports a result then, whose status is an error."""

    @tool
    def locked() -> str:
        """Always locked."""
        raise ToolException("the door is locked")

    locked.handle_tool_error = True
    call = {"name": "locked", "args": {}, "id": "c1", "type": "tool_call"}
    result = locked.invoke(call, {"callbacks": [SessionLogHandler(directory=tmp_path)]})
    assert result.status == "error"
    [data] = of_type(tmp_path, "tool.call")
    assert (data["tool"], data["error"], data.get("output")) == ("locked", "the door is locked", None)
    assert_sound(tmp_path)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_cancelled_stream(tmp_path, is_async):
    """What was received is recorded, by the host's leaving the loop or by cancelling its task."""
    model = scripted(answer_of("one two three"))
    config = {"callbacks": [SessionLogHandler(directory=tmp_path)]}

    async def read():
        async for _ in model.astream("Count", config):
            asyncio.current_task().cancel()
            await asyncio.sleep(0)

    if is_async:
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(read())
    else:
        for _ in model.stream("Count", config):
            break
    [response], [end] = of_type(tmp_path, "llm.response"), of_type(tmp_path, "session.end")
    assert (response["content"], response["partial"]) == ("one ", "cancelled")
    assert "error" not in response
    assert end["status"] == "cancelled"
    assert_sound(tmp_path)


@pytest.mark.parametrize("wrap", [lambda model: model, lambda model: RunnableLambda(str) | model])
def test_a_cancelled_call_without_a_stream(tmp_path, wrap):
    """LangChain does not report it: it ends with its task, or with the chain around it."""

    async def wait():
        asked = asyncio.Event()

        async def pause():
            asked.set()
            await asyncio.Event().wait()

        model = wrap(scripted(answer_of("late"), pause=pause))
        handler = SessionLogHandler(directory=tmp_path)
        call = asyncio.create_task(model.ainvoke("Hi", {"callbacks": [handler]}))
        await asked.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.sleep(0)
        assert handler._trees == {}

    asyncio.run(wait())
    assert [kind for kind, _ in logged(tmp_path)] == ["session.start", "llm.request", "llm.response", "session.end"]
    [response], [end] = of_type(tmp_path, "llm.response"), of_type(tmp_path, "session.end")
    assert (response["partial"], end["status"]) == ("cancelled", "cancelled")
    assert_sound(tmp_path)


def test_runs_beside_each_other_do_not_mix(tmp_path):
    """Twenty at once with one handler: each session has its own question, answer and tool."""

    def reply(messages):
        question = messages[1].content
        if messages[-1].type == "tool":
            return answer_of(f"answer to {question}: {messages[-1].content}")
        return answer_of("", calls=[("weather", {"city": question}, f"call-{question}")])

    model = Scripted(reply=reply, pause=lambda: asyncio.sleep(0))
    handler = SessionLogHandler(directory=tmp_path)

    async def ask(question, config):
        messages = [SystemMessage("Be brief."), HumanMessage(question)]
        messages.append(await model.ainvoke(messages, config))
        messages.append(await weather.ainvoke({**messages[-1].tool_calls[0], "type": "tool_call"}, config))
        return (await model.ainvoke(messages, config)).content

    async def run():
        chain = RunnableLambda(ask)
        return await asyncio.gather(*(chain.ainvoke(f"q{n}", {"callbacks": [handler]}) for n in range(20)))

    assert asyncio.run(run()) == [f"answer to q{n}: rain in q{n}" for n in range(20)]
    assert_one_question_each(tmp_path)
    assert handler._trees == {}


def test_threads_do_not_mix(tmp_path):
    """`batch` runs in threads."""

    def reply(messages):
        question = messages[1].content
        if messages[-1].type == "tool":
            return answer_of(f"answer to {question}: {messages[-1].content}")
        return answer_of("", calls=[("weather", {"city": question}, f"call-{question}")])

    handler = SessionLogHandler(directory=tmp_path)
    agent(Scripted(reply=reply)).batch([f"q{n}" for n in range(20)], {"callbacks": [handler], "max_concurrency": 8})
    assert_one_question_each(tmp_path)
    assert handler._trees == {}


def assert_one_question_each(folder):
    """Twenty sound logs, each with a question of its own and nothing of another's."""
    seen = set()
    for path in folder.glob("*.jsonl"):
        events = list(read_events(path))
        question = events[0].data["prompt"]
        seen.add(question)
        assert [event.type for event in events] == [
            "session.start", "llm.request", "llm.response", "tool.call", "llm.request", "llm.response", "session.end",
        ]  # fmt: skip
        assert events[3].data["input"] == {"city": question}
        assert events[-1].data["output"] == f"answer to {question}: rain in {question}"
    assert seen == {f"q{n}" for n in range(20)}
    assert_sound(folder)
    assert counted(folder) == (40, 0, 600, 4000, 200, 1200, 400)


def test_runs_below_a_tool_belong_to_the_root(tmp_path):
    """An agent as a tool of another."""
    inner, outer = scripted(answer_of("inner")), scripted(answer_of("", calls=[("ask", {}, "c1")]), answer_of("outer"))

    @tool
    def ask() -> str:
        """Ask another model."""
        return inner.invoke("Hi").content

    def loop(question):
        call = outer.invoke(question).tool_calls[0]
        return outer.invoke([HumanMessage(question), ask.invoke({**call, "type": "tool_call"})]).content

    RunnableLambda(loop).invoke("Hi", {"callbacks": [SessionLogHandler(directory=tmp_path)]})
    assert [data["content"] for data in of_type(tmp_path, "llm.response") if "content" in data] == ["inner", "outer"]
    assert len(of_type(tmp_path, "tool.call")) == 1
    assert_sound(tmp_path)


def test_a_given_logger_has_all_runs(tmp_path):
    """Its owner ends it."""
    with SessionLogger(tmp_path, "s") as log:
        model = scripted(answer_of("one"), answer_of("two"))
        for question in ("a", "b"):
            model.invoke(question, {"callbacks": [SessionLogHandler(log)]})
    kinds = [kind for kind, _ in logged(tmp_path)]
    assert kinds == ["session.start", *["llm.request", "llm.response"] * 2, "session.end"]


def test_a_failure_of_the_integration_stays_in_it(tmp_path, monkeypatch):
    """The host's result is the same; health() has the cause."""

    def broken(*_):
        raise LookupError("a field that is gone")

    monkeypatch.setattr(integration, "_to_message", broken)
    monkeypatch.setattr(integration, "_response_fields", broken)
    log = SessionLogger(tmp_path, "s", notify=lambda _: None)
    with log:
        assert scripted(answer_of("Hello.")).invoke("Hi", {"callbacks": [SessionLogHandler(log)]}).content == "Hello."
    assert log.health().dropped_by == {"integration": 2}


def test_errors_reach_a_host_that_asked_for_them(tmp_path, monkeypatch):
    """`on_error="raise"`."""
    monkeypatch.setattr(integration, "_to_message", lambda _: 1 / 0)
    handler = SessionLogHandler(directory=tmp_path, on_error="raise", notify=lambda _: None)
    with pytest.raises(OSError, match="division"):
        scripted(answer_of("Hello.")).invoke("Hi", {"callbacks": [handler]})


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"input_tokens": 10, "output_tokens": 3, "total_tokens": 13}, {"input": 10, "output": 3}),
        (USAGE, {"input": 15, "output": 30, "cache_read": 100, "cache_write": 5, "reasoning": 10}),
        (
            {"input_tokens": 100, "output_tokens": 9, "input_token_details": {"flex_cache_read": 60, "flex": 40},
             "output_token_details": {"flex_reasoning": 4, "flex": 5}},
            {"input": 40, "output": 9, "cache_read": 60, "reasoning": 4},
        ),
        (
            {"input_tokens": 1000, "output_tokens": 9, "input_token_details": {
                "cache_read": 500, "cache_creation": 0, "ephemeral_5m_input_tokens": 100,
                "ephemeral_1h_input_tokens": 300}},
            {"input": 100, "output": 9, "cache_read": 500, "cache_write": 400, "cache_write_1h": 300},
        ),
        (
            {"input_tokens": 10, "output_tokens": 0, "input_token_details": {"cache_read": 100, "audio": None}},
            {"input": 10, "output": 0, "cache_read": 100},
        ),
        ({"input_tokens": None, "output_tokens": 1, "input_token_details": None}, {"input": 0, "output": 1}),
    ],
    ids=["plain", "openai", "service tier", "anthropic with two lifetimes", "cached tokens beside", "nothing"],
)  # fmt: skip
def test_token_classes_are_disjoint(usage, counts):
    """LangChain's input includes what was cached."""
    assert read_tokens(usage) == counts


def test_an_answer_from_langchains_own_cache_costs_nothing(tmp_path):
    """No request is sent for it, though LangChain reports the tokens of the first one again."""
    model = scripted(answer_of("Hello."), cache=InMemoryCache())
    with SessionLogger(tmp_path, "s") as log:
        for _ in range(2):
            assert model.invoke("Hi", {"callbacks": [SessionLogHandler(log)]}).content == "Hello."
    assert [data["content"] for data in of_type(tmp_path, "llm.response")] == ["Hello.", "Hello."]
    assert of_type(tmp_path, "llm.response")[1]["cost_usd"] == 0
    assert counted(tmp_path) == (2, 0, 15, 100, 5, 30, 10)


def test_a_model_that_completes_texts(tmp_path):
    """`on_llm_start`: the prompt is a user's message."""
    FakeListLLM(responses=["Hello."]).invoke("Hi", {"callbacks": [SessionLogHandler(directory=tmp_path)]})
    assert of_type(tmp_path, "llm.request")[0]["messages"] == [{"role": "user", "content": "Hi"}]
    assert of_type(tmp_path, "llm.response")[0]["content"] == "Hello."
    assert_sound(tmp_path)


def test_thinking_and_calls_in_anthropics_content(tmp_path):
    """The text is the content; the calls are not repeated; the thinking is in `message`."""
    blocks = [
        {"type": "thinking", "thinking": "A city.", "signature": "x"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Bonn"}},
    ]
    answer = AIMessage(blocks, tool_calls=[{"name": "weather", "args": {"city": "Bonn"}, "id": "c1"}])
    with SessionLogger(tmp_path, "s") as log:
        handler = SessionLogHandler(log)
        scripted(answer).invoke("Hi", {"callbacks": [handler]})
        scripted(answer_of("Rain.")).invoke(
            [HumanMessage("Hi"), answer, ToolMessage("rain", tool_call_id="c1")], {"callbacks": [handler]}
        )
    first = of_type(tmp_path, "llm.response")[0]
    assert first["content"] == "I look."
    assert [block["type"] for block in first["message"]["content"]] == ["thinking", "text"]
    entries = read_entries(of_type(tmp_path, "llm.request")[1]["messages"])
    assert [len(message.tool_calls) for entry in entries for message in entry.messages] == [0, 1, 0]
    assert_sound(tmp_path)


def test_a_chain_with_a_prompt_and_a_retriever(tmp_path):
    """The documents that were found are the output of a tool."""

    class Library(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return [Document(f"about {query}", metadata={"source": "a.txt"})]

    prompt = ChatPromptTemplate.from_messages([("system", "Be brief."), ("human", "{found}")])
    chain = {"found": Library()} | prompt | scripted(answer_of("Rain."))
    chain.invoke("rain", {"callbacks": [SessionLogHandler(directory=tmp_path)]})
    [call], [start] = of_type(tmp_path, "tool.call"), of_type(tmp_path, "session.start")
    assert (call["tool"], call["input"]) == ("Library", "rain")
    assert call["output"] == [{"page_content": "about rain", "metadata": {"source": "a.txt"}}]
    assert start["prompt"] == "rain"
    assert of_type(tmp_path, "session.end")[0]["output"] == "Rain."
    assert_sound(tmp_path)


def test_a_run_whose_parent_is_unknown_is_a_root(tmp_path):
    """A handler of the model alone, inside a chain."""
    model = scripted(answer_of("Hello.")).with_config(callbacks=[SessionLogHandler(directory=tmp_path)])
    (RunnableLambda(lambda text: text) | model).invoke("Hi", {"callbacks": [BaseCallbackHandler()]})
    assert [kind for kind, _ in logged(tmp_path)] == ["session.start", "llm.request", "llm.response", "session.end"]


def test_callbacks_run_in_the_thread_of_the_event_loop(tmp_path):
    """The request is in the log before the model is called."""
    seen = []

    async def look():
        seen.append((threading.current_thread(), [kind for kind, _ in logged(tmp_path)]))

    model = scripted(answer_of("Hello."), pause=look)
    asyncio.run(model.ainvoke("Hi", {"callbacks": [SessionLogHandler(directory=tmp_path)]}))
    assert seen == [(threading.main_thread(), ["session.start", "llm.request"])]
