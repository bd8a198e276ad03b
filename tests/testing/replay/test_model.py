"""ReplayModel: what it gives, when it fails, forks and edits, called as a plain function."""

import threading
from pathlib import Path

import pytest

from sessionlog import SessionLogger
from sessionlog.conversation import Agent, Message, Session, ToolRequest
from sessionlog.errors import AgentError, LogNotReadable, ReplayMiss
from sessionlog.events.tokens import TokenUsage
from sessionlog.testing import ReplayModel
from tests.testing.replay.logs import ANSWER, ASKED, CHAT, SYSTEM, session, user, write

FIRST = {**CHAT, "messages": CHAT["messages"][:2], "temperature": 0}


def ask(replay, fields=FIRST, **changes):
    """Ask a replay as a function."""
    given = fields | changes
    return replay(given["messages"], **{name: value for name, value in given.items() if name != "messages"})


@pytest.fixture
def replay(tmp_path):
    """A replay of the agent's session."""
    return ReplayModel(session(tmp_path))


def test_a_function_gets_the_recorded_answers(replay):
    """In any order; each as a reply with usage."""
    second = ask(replay, CHAT, temperature=0)
    first = ask(replay)
    assert (second.message.text, second.finish_reason, second.model) == (ANSWER, "stop", "gpt-5-2025-08-07")
    assert (first.message.text, [call.name for call in first.message.tool_calls]) == ("Let me look.", ["read"])
    assert first.usage == TokenUsage(input=100, output=20, cache_read=60)
    assert (replay.unused, replay.misses) == ((), ())


def test_a_miss_explains_itself(replay):
    """The prompt, the nearest recording, the difference, what is not compared, and what to do."""
    with pytest.raises(ReplayMiss) as miss:
        ask(replay, messages=[CHAT["messages"][0], user("What does b.py do?")])
    assert str(miss.value) == (
        f"{replay.path} has no recording of this request: 'What does b.py do?'\n"
        "  nearest is recording 1 of 2: 'What does a.py do?'\n"
        "  messages[0].content: recorded 'What does a.py do?' · sent 'What does b.py do?'\n"
        "  not compared: model\n"
        "  if the change is meant, record the log again (pytest --sessionlog-record)"
    )
    assert isinstance(miss.value, AssertionError)


def test_a_recording_is_given_once(tmp_path):
    """A repeated request gets the next recording of it, until there is none."""
    replay = ReplayModel(write(tmp_path, [user("more")], "1", [user("stop")], "0", [user("more")], "2"))
    assert [replay([user("more")]).message.text for _ in range(2)] == ["1", "2"]
    with pytest.raises(
        ReplayMiss, match=r"(?m)^  it is recording 1, 3 of 3, which was given before; each is given once$"
    ):
        replay([user("more")])
    assert [one.number for one in replay.unused] == [2]


def test_in_order_whatever_is_asked(tmp_path):
    """The lenient way; at the end there is nothing to give."""
    replay = ReplayModel(session(tmp_path), by="order")
    assert [replay("?").message.text for _ in range(2)] == ["Let me look.", ANSWER]
    with pytest.raises(ReplayMiss, match=r"s.jsonl: all 2 recordings were given; sent after them: 'more'"):
        replay("more")


def test_parts_can_be_ignored(tmp_path):
    """A system prompt with a date would never be the same."""
    path = session(tmp_path)
    other = [{"role": "system", "content": "It is Monday."}, user(ASKED)]
    with pytest.raises(ReplayMiss, match=f"system: recorded '{SYSTEM}' · sent 'It is Monday.'"):
        ask(ReplayModel(path), messages=other)
    replay = ReplayModel(path, ignore=("system", "tools"))
    assert replay.left_out == ("system", "tools")
    assert ask(replay, messages=other, tools=None).message.text == "Let me look."


def test_parts_that_the_log_lacks_are_not_compared(tmp_path):
    """And are listed."""
    replay = ReplayModel(write(tmp_path, [user("hi")], "hello"))
    assert replay.left_out == ("model", "tools", "parameters")
    assert replay([user("hi")], model="m", tools=CHAT["tools"], temperature=1).message.text == "hello"
    with pytest.raises(ReplayMiss, match="not compared: model, tools, parameters"):
        replay([user("ho")])


def test_a_model_is_compared_where_it_is_given(replay):
    """A function may not know it."""
    with pytest.raises(ReplayMiss, match="model: recorded 'gpt-5' · sent 'gpt-6'"):
        ask(replay, model="gpt-6")
    assert ask(replay, model="gpt-5").message.text == "Let me look."


def test_a_recorded_error_is_raised(tmp_path):
    """Then the next attempt gets the next recording."""
    replay = ReplayModel(write(tmp_path, [user("?")], {"error": "429 slow down"}, [user("?")], "yes"))
    with pytest.raises(AgentError, match="429 slow down"):
        replay("?")
    assert replay("?").message.text == "yes"


def test_a_miss_that_was_caught_fails_at_the_end(replay):
    """The code under test may catch everything; an exception of its own comes first."""
    with pytest.raises(ReplayMiss, match="no recording of this request: 'caught'"), replay:  # noqa: PT012
        try:
            replay("caught")
        except Exception:
            replay.recordings  # noqa: B018 - the program goes on
    with pytest.raises(KeyError), ReplayModel(replay.path) as other:  # noqa: PT012
        try:
            other("caught")
        except ReplayMiss:
            raise KeyError from None


def test_unused_recordings_fail_only_if_that_is_asked_for(tmp_path):
    """With their prompts, the first three of them."""
    events = [event for n in range(5) for event in ([user(f"prompt {n}")], str(n))]
    path = write(tmp_path, *events)
    with ReplayModel(path) as replay:
        replay("prompt 1")
    with pytest.raises(ReplayMiss) as miss, ReplayModel(path, strict_end=True) as replay:
        replay("prompt 1")
    assert str(miss.value) == (
        f"{path}: 4 of 5 recordings were not asked for\n  1: 'prompt 0'\n  3: 'prompt 2'\n  4: 'prompt 3'\n  and 1 more"
    )


def test_an_edited_answer_leaves_the_replay_as_it_was(replay):
    """A new replay has the other answer; calls without ids get some."""
    edited = replay.edit(1, text="Wait.", tool_calls=[{"name": "ls", "arguments": {"all": True}}])
    reply = ask(edited)
    assert (reply.message.text, reply.message.tool_calls[0].name, reply.message.tool_calls[0].id) == (
        "Wait.",
        "ls",
        "call_1_1",
    )
    assert ask(edited.edit(1, text="Stop.")).message.tool_calls == ()
    assert ask(replay).message.text == "Let me look."
    with pytest.raises(AgentError, match="503 busy"):
        ask(replay.edit(1, error="503 busy"))


def test_after_an_edited_answer_recordings_are_given_to_the_same_requests_alone(replay):
    """The next request repeats the edited answer, so it is another one."""
    edited = replay.edit(1, text="Wait.", tool_calls=[])
    ask(edited)
    with pytest.raises(ReplayMiss, match=r"messages.1..content: recorded 'Let me look.' · sent 'Wait.'"):
        ask(edited, messages=[*FIRST["messages"], {"role": "assistant", "content": "Wait."}, user("Go on")])
    assert ask(edited, CHAT, temperature=0).message.text == ANSWER


def test_a_fork_continues_with_something_live(replay):
    """Once all recordings before were given; until then a miss is a miss."""

    def live(messages, **options):
        return f"live: {messages[-1]['content']} {sorted(options)}"

    forked = replay.fork(2, live)
    with pytest.raises(ReplayMiss):
        forked("too early")
    assert ask(forked).message.text == "Let me look."
    assert forked([user("now")], model="m", seed=1) == "live: now ['model', 'seed']"
    cut = replay.fork(at=2)
    assert len(cut.recordings) == 1
    with pytest.raises(ReplayMiss):
        ask(cut, CHAT, temperature=0)


@pytest.mark.parametrize("number", [0, 3])
def test_a_recording_that_does_not_exist_is_refused(replay, number):
    """By both."""
    for call in (replay.fork, replay.edit):
        with pytest.raises(ValueError, match=rf"there is no recording {number}: .*s.jsonl has 1 to 2"):
            call(number)


@pytest.mark.parametrize("options", [{"by": "name"}, {"ignore": ("messages",)}, {"ignore": "date"}], ids=str)
def test_options_that_do_not_exist_are_refused(tmp_path, options):
    """A misspelt one would compare too much or too little."""
    with pytest.raises(ValueError, match="use "):
        ReplayModel(session(tmp_path), **options)


def test_a_log_is_named_by_path_or_id(tmp_path):
    """As for every command."""
    path = session(tmp_path, name="s-fix-9")
    assert ReplayModel(str(path)).path == ReplayModel("s-fix", directory=str(tmp_path), env={}).path == str(path)
    with pytest.raises(LogNotReadable, match=r"gone\.jsonl"):
        ReplayModel(tmp_path / "gone.jsonl", env={})


def test_a_session_with_a_replay_as_its_agent(tmp_path):
    """What a conversation has recorded it gets again, with its tools and system text."""

    def look(path: str) -> str:
        """Read a file."""
        return f"text of {path}"

    call = ToolRequest("c1", "look", {"path": "a.py"})
    answers = iter([Message.assistant("", tool_calls=[call]), "It is short."])
    with SessionLogger(tmp_path, "talk") as log:
        agent = Agent(lambda messages, **options: next(answers), tools=[look])
        recorded = Session(agent, system=SYSTEM, logger=log).run("What is in a.py?")
    replay = ReplayModel(tmp_path / "talk.jsonl")
    again = Session(Agent(replay, tools=[look]), system=SYSTEM).run("What is in a.py?")
    assert (again.message.text, replay.unused) == (recorded.message.text, ())
    assert [message.role for message in again.messages] == ["user", "assistant", "tool", "assistant"]


def test_threads_share_the_recordings(tmp_path):
    """Each is given once."""
    events = [event for n in range(40) for event in ([user("?")], str(n))]
    replay, given = ReplayModel(write(tmp_path, *events)), []
    threads = [
        threading.Thread(target=lambda: given.extend(replay("?").message.text for _ in range(10))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(int, given)) == [*range(40)]


def test_a_log_is_only_read(replay):
    """By whatever is asked."""
    before = Path(replay.path).read_bytes()
    ask(replay)
    with pytest.raises(ReplayMiss):
        replay("other")
    assert Path(replay.path).read_bytes() == before
