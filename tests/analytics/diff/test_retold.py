"""Histories that are cut and told again: each message counts once, and forks part where they were made."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog import SessionLogger, read_events
from sessionlog.analytics.diff.transcript import fold_transcript
from sessionlog.conversation.agent import Agent
from sessionlog.conversation.history.settings import ConversationSettings
from sessionlog.conversation.log import recorder
from tests.analytics.diff.test_report import diff
from tests.profiles import examples

TIGHT = ConversationSettings(max_conversation_tokens=100, truncation_keep_recent=2)


def answer(messages):
    """Says how much it heard, so that every answer is another."""
    return f"the answer to {messages[-1].text} after {len(messages)} messages"


def session(folder, name, settings_=None):
    return Agent(answer).session(name, logger=SessionLogger(folder, name), settings=settings_)


def told(path):
    """What the transcript of a log says."""
    return [one.text for one in fold_transcript(read_events(str(path))).messages]


class Talk:
    """A session, and what was said in it and not taken back."""

    def __init__(self, folder, settings_):
        self.folder, self.numbers = folder, itertools.count()
        self.session, self.said = session(folder, "s0", settings_), []

    def run(self):
        prompt = f"question {next(self.numbers)}"
        self.said += [prompt, self.session.run(prompt).text]

    def again(self):
        """The same words, which are another message."""
        self.said += ["go on", self.session.run("go on").text]

    def undo(self):
        for message in reversed(self.session.undo()):
            place = len(self.said) - 1 - self.said[::-1].index(message.text)
            del self.said[place]

    def clear(self):
        self.session.clear()

    def add(self):
        text = f"note {next(self.numbers)}"
        self.session.add_message("user", text)
        self.said.append(text)

    def fork(self):
        before, self.session = self.session, self.session.fork(f"s{next(self.numbers)}x")
        before.close()
        self.said = [message.text for message in self.session.messages]

    def resume(self):
        path, kept = self.folder / f"{self.session.session_id}.jsonl", self.session.settings
        self.session.close()
        if path.exists():
            self.session = type(self.session).resume(str(path), Agent(answer), settings=kept)


STEPS = st.lists(st.sampled_from(["run", "run", "again", "undo", "clear", "add", "fork", "resume"]), max_size=9)


@examples(60)
@given(STEPS, st.sampled_from([None, TIGHT]), st.sampled_from([recorder.LONG, 300]))
def test_what_is_told_again_is_said_once(tmp_path_factory, steps, budget, long):
    """Whatever a session, a fork or a resumed one went through; only what was taken back is no part of it."""
    folder = tmp_path_factory.mktemp("talk")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorder, "LONG", long)
        talk = Talk(folder, budget)
        for step in ["run", *steps, "run"]:
            getattr(talk, step)()
        talk.session.close()
    assert told(folder / f"{talk.session.session_id}.jsonl") == talk.said


def test_a_fork_parts_where_it_was_made(tmp_path):
    """What its parent had dropped by then is counted and is no difference."""
    parent = session(tmp_path, "parent", TIGHT)
    for n in range(8):
        parent.run(f"question {n}, long enough to be dropped some day")
    fork = parent.fork("fork")
    inherited = len(fork.messages)
    parent.run("on the one hand")
    fork.run("on the other hand")
    parent.close()
    fork.close()
    found = diff(tmp_path / "parent.jsonl", tmp_path / "fork.jsonl")
    assert (found.fork, found.common) == ("right", inherited)
    assert found.dropped == 16 - inherited > 0
    assert (found.first("left").text, found.first("right").text) == ("on the one hand", "on the other hand")
    assert found.counts == {"same": inherited, "changed": 2, "left": 0, "right": 0, "dropped": 16 - inherited}
    assert diff(tmp_path / "fork.jsonl", tmp_path / "parent.jsonl").dropped == found.dropped


def test_a_fork_inherits_a_summary_as_one(tmp_path):
    """It is the same on both sides, and no prompt."""
    settings_ = replace(
        TIGHT,
        max_conversation_tokens=300,
        truncation_strategy="summarise",
        summary=lambda dropped: f"{len(dropped)} messages",
    )
    parent = session(tmp_path, "parent", settings_)
    for n in range(8):
        parent.run(f"question {n}, long enough to be dropped some day")
    fork = parent.fork("fork")
    fork.run("more")
    parent.close()
    fork.close()
    found = diff(tmp_path / "parent.jsonl", tmp_path / "fork.jsonl")
    assert "summary" in [pair.right.role for pair in found.pairs if pair.kind == "same"]
    assert [pair.kind for pair in found.rest] == ["right", "right"]


def test_a_fork_after_a_clear_parts_where_it_was_made(tmp_path):
    """It inherits what was said since then."""
    parent = session(tmp_path, "parent")
    parent.run("before")
    parent.clear()
    parent.run("since")
    fork = parent.fork("fork")
    fork.run("more")
    parent.close()
    fork.close()
    found = diff(tmp_path / "parent.jsonl", tmp_path / "fork.jsonl")
    assert (found.common, found.dropped, found.first("right").text) == (2, 2, "more")
    assert found.right.figures()["inherited_messages"] == 2


def test_what_was_taken_back_is_not_compared(tmp_path):
    """It is counted; what was inherited and taken back is missing."""
    parent = session(tmp_path, "parent")
    parent.run("one")
    fork = parent.fork("fork")
    fork.run("two")
    fork.undo()
    parent.close()
    fork.close()
    found = diff(tmp_path / "parent.jsonl", tmp_path / "fork.jsonl")
    assert found.is_equal
    assert found.right.figures()["taken_back_messages"] == 2
    fork = type(parent).resume(str(tmp_path / "fork.jsonl"), Agent(answer))
    fork.undo()
    fork.close()
    found = diff(tmp_path / "parent.jsonl", tmp_path / "fork.jsonl")
    assert (found.counts["left"], found.dropped) == (2, 0)
