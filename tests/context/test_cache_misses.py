"""Why a request missed the cache: the first block that differs from the request before it, else time, else the provider."""

import pytest

from sessionlog.errors import LogNotReadable
from sessionlog.events.tokens import TokenUsage
from tests.context.reports import cache_misses
from tests.sources.logs import answered, asked, event, start, write_log

TOOLS = [{"name": "read", "description": "Reads"}, {"name": "bash", "description": "Runs"}]
SIZE = 10_000


def user(text, **more):
    return {"role": "user", "content": text, **more}


def said(text):
    return {"role": "assistant", "content": text}


class Agent:
    """An agent that asks with its whole prompt; its provider finds in the cache what the test says."""

    def __init__(self, folder):
        self.path, self.items, self.minute = folder / "s.jsonl", [start(provider="anthropic", model="m-1")], 0
        self.messages, self.tools, self.system, self.model = [user("first")], TOOLS, "be brief", "m-1"

    def ask(self, *, cached, minutes=1, **usage):
        """Ask, and have it answered."""
        self.minute += minutes
        clock = f"{10 + self.minute // 60}:{self.minute % 60:02}:00"
        asked_for = {"system": self.system, "tools": self.tools, "model": self.model, "messages": list(self.messages)}
        self.items.append(asked(clock, **asked_for))
        used = {"input": 10, "output": 5, "cache_read": cached, "cache_write": SIZE - cached, **usage}
        self.items.append(
            answered(clock.replace(":00", ":01", 1)[:-2] + "02", content="ok", usage=used, model=self.model)
        )
        self.messages = [*self.messages, said("ok"), user(f"next {self.minute}")]

    def misses(self, **options):
        """(request, reason, detail) of each miss."""
        report = cache_misses(write_log(self.path, *self.items), **options)
        return [(miss.request, miss.reason, miss.detail) for miss in report.misses]


@pytest.fixture
def agent(tmp_path):
    """An agent after two requests, the second of which found all that the first had left."""
    made = Agent(tmp_path)
    made.ask(cached=0)
    made.ask(cached=SIZE)
    return made


def test_an_agent_that_goes_on_misses_nothing(agent):
    """New messages at the end are no miss."""
    agent.ask(cached=SIZE)
    assert agent.misses() == []


def test_an_edited_system_prompt(agent):
    """It stands before all messages."""
    agent.system = "be brief; it is 10:03"
    agent.ask(cached=0)
    assert agent.misses() == [(3, "system", "system prompt changed")]


def test_a_tool_that_is_added(agent):
    """Tools come first of all; one that is left out, or described in another way, is named as well."""
    agent.tools = [*TOOLS, {"name": "write", "description": "Writes"}]
    agent.ask(cached=0)
    agent.tools = agent.tools[1:]
    agent.ask(cached=0)
    agent.tools = [{"name": "bash", "description": "Runs a command"}, *agent.tools[1:]]
    agent.ask(cached=0)
    assert agent.misses() == [
        (3, "tools", "tool write added"), (4, "tools", "tool read dropped"), (5, "tools", "tool bash changed"),
    ]  # fmt: skip


def test_a_message_that_is_dropped_or_edited(agent):
    """By its place in the former request."""
    agent.ask(cached=SIZE)
    del agent.messages[1]
    agent.ask(cached=100)
    agent.messages[0] = user("first, in other words")
    agent.ask(cached=100)
    agent.messages.insert(1, user("put between"))
    agent.ask(cached=100)
    assert agent.misses() == [
        (4, "message", "assistant message #2 dropped"), (5, "message", "user message #1 changed"),
        (6, "message", "user message #2 added"),
    ]  # fmt: skip


def test_marks_of_what_to_cache_are_no_change(agent):
    """They move from request to request."""
    agent.messages[0] = user("first", cache_control={"type": "ephemeral"})
    agent.ask(cached=0)
    assert [reason for _, reason, _ in agent.misses()] == ["provider"]


def test_time_that_has_passed(agent):
    """Five minutes, or an hour where something was written for an hour."""
    agent.ask(cached=0, minutes=20)
    assert [reason for _, reason, _ in agent.misses()] == ["expired"]
    agent.items = agent.items[:-2]
    agent.items[-1]["data"]["usage"] |= {"cache_read": SIZE - 9, "cache_write": 9, "cache_write_1h": 9}
    agent.ask(cached=0, minutes=20)
    assert [reason for _, reason, _ in agent.misses()] == ["provider"]


def test_another_model(agent):
    """Its cache is its own, whatever else changes."""
    agent.model, agent.system = "m-2", "other"
    agent.ask(cached=0)
    assert agent.misses() == [(3, "model", "m-1 → m-2")]


def test_a_provider_that_lets_go(agent):
    """Nothing differs."""
    agent.ask(cached=2000)
    assert [reason for _, reason, _ in agent.misses()] == ["provider"]


def test_a_history_that_was_summed_up(agent):
    """The summary stands in the place of what was before."""
    agent.items.append(event("compaction.end", "10:02:30", {"success": True, "summary": "short"}))
    agent.messages = [user("short"), user("go on")]
    agent.ask(cached=1000)
    assert agent.misses() == [(3, "compaction", "the history was compacted")]


def test_a_request_that_fails_takes_nothing_from_what_follows(agent):
    """The compaction before it is the reason of the next miss."""
    agent.items.append(event("compaction.end", "10:02:30", {"success": True, "summary": "short"}))
    agent.messages = [user("short"), user("go on")]
    agent.items += [asked("10:02:31", messages=agent.messages, tools=TOOLS, system="be brief", model="m-1")]
    agent.items += [answered("10:02:32", error="overloaded")]
    agent.ask(cached=1000)
    assert agent.misses() == [(4, "compaction", "the history was compacted")]


def test_no_more_is_missed_than_was_asked(agent):
    """A title is a short request."""
    agent.ask(cached=0, cache_write=0, input=300)
    report = cache_misses(write_log(agent.path, *agent.items))
    assert [miss.missed_tokens for miss in report.misses] == [300]


def test_what_an_agent_has_estimated_is_no_miss(agent):
    """Nobody has counted what came from the cache."""
    agent.ask(cached=0)
    agent.items[-1]["data"]["quality"] = "estimated"
    assert agent.misses() == []


def test_a_log_without_prompts_tells_time_and_model(tmp_path):
    """Another agent's log that holds only what is new."""
    made = Agent(tmp_path)
    made.ask(cached=0)
    made.ask(cached=SIZE)
    made.ask(cached=0)
    for item in made.items:
        item["data"].pop("messages", None)
    assert [reason for _, reason, _ in made.misses()] == ["not_in_log"]


def test_what_a_miss_costs(agent):
    """What was written again costs more than reading it: 10 for a token that is written, 1 for one that is read."""
    agent.ask(cached=2000)

    def price(provider, model, usage, at_ns):
        assert (provider, model) == ("anthropic", "m-1")
        return 10 * usage.cache_write + usage.cache_read

    report = cache_misses(write_log(agent.path, *agent.items), price=price)
    [miss] = report.misses
    assert (miss.expected_tokens, miss.cached_tokens, miss.missed_tokens) == (SIZE, 2000, 8000)
    assert miss.cost_nano == report.cost_nano == 9 * 8000
    assert report.to_dict()["misses"][0]["cost_usd"] == 0.000072
    unknown = cache_misses(str(agent.path), price=lambda *_: None)
    assert unknown.cost_nano is None


def test_a_provider_without_a_cache_has_no_misses(tmp_path):
    """Nothing was ever found, so nothing is expected."""
    made = Agent(tmp_path)
    for _ in range(3):
        made.ask(cached=0, cache_write=0, input=SIZE)
    assert made.misses() == []


def test_a_provider_that_names_no_writes_caches_whole_prompts(tmp_path):
    """As OpenAI's does: what was sent is expected to be found."""
    made = Agent(tmp_path)
    for cached in (0, SIZE - 100, 0):
        made.ask(cached=cached, cache_write=0, input=SIZE - cached)
    assert [(request, reason) for request, reason, _ in made.misses()] == [(3, "provider")]


def test_providers_of_one_session_are_told_apart(tmp_path):
    """That one provider names its writes says nothing of another's."""
    usages = [
        ("a", {"input": 1000, "output": 1, "cache_read": 500}),
        ("a", {"input": 1000, "output": 1, "cache_read": 510}),
        ("b", {"input": 1000, "output": 1, "cache_read": 400, "cache_write": 200}),
        ("b", {"input": 1000, "output": 1, "cache_read": 610, "cache_write": 200}),
    ]
    items = [start()]
    for number, (provider, usage) in enumerate(usages):
        items += [asked(f"10:0{number}:00", model="m"), answered(f"10:0{number}:01", usage=usage, provider=provider)]
    found = [
        (miss.request, miss.missed_tokens) for miss in cache_misses(write_log(tmp_path / "s.jsonl", *items)).misses
    ]
    assert found == [(2, 990), (3, 1110)]


def test_a_log_without_answers(tmp_path):
    """Nothing is known of its cache."""
    with pytest.raises(LogNotReadable, match="no request of it has an answer"):
        cache_misses(write_log(tmp_path / "s.jsonl", start(), asked(messages=[])))


def test_odd_prompts_are_no_error(tmp_path):
    """Whatever a log holds."""
    deep = []
    for _ in range(400):
        deep = [deep]
    usage = TokenUsage(input=SIZE, cache_read=1).to_dict()
    items = [start()]
    for messages in ([deep[0][0]], [None, 7], [{"role": 7, "content": []}]):
        items += [asked(messages=messages, tools=[None, {}], system=["x"]), answered(content="a", usage=usage)]
    assert len(cache_misses(write_log(tmp_path / "s.jsonl", *items)).misses) == 2
