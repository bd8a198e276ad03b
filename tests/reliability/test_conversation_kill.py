"""kill -9 in the middle of a conversation: what was shown to anybody is remembered, and the session goes on.

A child holds a streaming conversation with tools through the public API alone. It says in a pipe what its consumer has
been shown, after it was shown: the user's message (when the agent is asked), each piece of text, each tool's result,
each turn that was completed. It is killed at a random moment, half of the times from outside, half of the times between
two bytes of a write to its log. Then the session is resumed from the log alone, by the judge and by the next child.

Another child asks with a store beside the log, and a history that is summed up again and again. Its questions count from
the moment that anything but the library has seen them: the store, the summary, the agent.
"""

import os
import random
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import pytest

from sessionlog.conversation import (
    Agent,
    ConversationSettings,
    FileStore,
    Message,
    Reply,
    Session,
    TextDelta,
    ToolReturned,
    tool,
)
from sessionlog.conversation.history.rules import is_valid
from sessionlog.conversation.log.logged_session import find_logged_session
from sessionlog.conversation.log.recorder import Recorder
from sessionlog.conversation.turns.pieces import Done
from sessionlog.events.tokens import TokenUsage
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.messages.message import ToolRequest
from sessionlog.sources.native import holds_events
from tests.reliability.children import fork, wait

KILLS_PER_SESSION = 8
WHOLE = ConversationSettings(auto_truncate=False)
_MARK = re.compile(r"<([a-z]\d+\.\d+(?:\.\d+)?)>")
_WIDTHS = (0, 0, 0, 200, 5_000, 100_000)  # the longer a write, the likelier it is torn
_MANY = 60  # pieces that a child shows at most before it is killed from outside


@dataclass
class Tally:
    """What happened in a run.

    Attributes:
        kills: How often a child was killed.
        shown: What was shown before, all in all.
        turns: How many turns were completed.
        torn: Lines that a kill left unfinished.
        states: How the sessions stood after a kill.
        findings: What must not be.
    """

    kills: int = 0
    shown: int = 0
    turns: int = 0
    torn: int = 0
    states: set[str] = field(default_factory=set)
    findings: list[str] = field(default_factory=list)


def agent_of(name: str, chance: random.Random, told) -> Agent:
    """An agent that streams, asks for tools, and then streams again; every piece has a mark of its own."""
    numbers = iter(range(1_000_000))

    def mark(kind: str) -> str:
        return f"<{kind}{name}.{next(numbers)}>" + "x" * chance.choice(_WIDTHS)

    @tool
    def look_up(place: str) -> str:
        """Look something up."""
        return mark("r") + place

    def answer(messages) -> Iterator[TextDelta | Reply]:
        if messages[-1].role == "user":
            told(_MARK.findall(messages[-1].text)[0])
        pieces = [mark("d") for _ in range(chance.randrange(1, 6))]
        yield from map(TextDelta, pieces)
        calls = ()
        if messages[-1].role == "user":
            calls = tuple(ToolRequest(mark("c")[1:9], "look_up", {"place": "a"}) for _ in range(chance.randrange(3)))
        message = Message.assistant("".join(pieces), tool_calls=calls)
        yield Reply(message=message, usage=TokenUsage(input=1, output=1))

    return Agent(answer, "Be brief.", [look_up])


def talk(session: Session, name: str, chance: random.Random, told) -> None:
    """Hold a conversation until somebody kills us."""
    for turn in range(1_000_000):
        for piece in session.stream(f"<u{name}.{turn}>" + "y" * chance.choice(_WIDTHS)):
            if isinstance(piece, TextDelta):
                told(_MARK.findall(piece.text)[0])
            elif isinstance(piece, ToolReturned):
                told(_MARK.findall(piece.message.text)[0])
            elif isinstance(piece, Done):
                told(f"t{name}.{turn}")


def child(folder: Path, session_id: str, name: str, seed: int, pipe: int) -> None:
    """Begin or resume the session, and talk; dies of its own accord between two bytes where the seed says so."""
    chance = random.Random(seed)
    if chance.random() < 0.5:
        die_in_a_write(chance, pipe)

    def told(mark: str) -> None:
        os.write(pipe, mark.encode() + b"\n")

    agent = agent_of(name, chance, told)
    if is_begun(folder / f"{session_id}.jsonl"):
        session = Session.resume(folder / f"{session_id}.jsonl", agent, settings=WHOLE)
    else:
        session = agent.session(logger=SessionLogger(folder, session_id, work_dir="/p"), settings=WHOLE)
    talk(session, name, chance, told)


def die_in_a_write(chance: random.Random, pipe: int) -> None:
    """Kill this process after some bytes of some write to its log."""
    write, left = os.write, chance.randrange(1, 40)

    def cut_short(fd: int, data: bytes) -> int:
        nonlocal left
        if fd != pipe:
            left -= 1
            if not left:
                write(fd, data[: chance.randrange(len(data) + 1)])
                os.kill(os.getpid(), signal.SIGKILL)
        return write(fd, data)

    os.write = cut_short


def asking_child(folder: Path, session_id: str, name: str, seed: int, pipe: int) -> None:
    """Begin the session or go on with it, in its store and its log, and ask; the history is cut again and again."""
    chance, asked = random.Random(seed), [""]
    if chance.random() < 0.5:
        die_in_a_write(chance, pipe)

    def told() -> None:
        os.write(pipe, asked[0].encode() + b"\n")

    class Telling(FileStore):
        """Tells of a question before it is kept."""

        def save(self, session_id, data):
            told()
            return super().save(session_id, data)

    def summary(messages) -> str:
        told()
        if chance.random() < 0.2:
            raise ConnectionError
        return "Words."

    def answer(messages) -> Iterator[str]:
        told()
        yield from ("Yes. " * 10, "No. " * 10)

    store, logger = Telling(folder / "stored"), SessionLogger(folder, session_id, work_dir="/p")
    session = Session(answer, session_id, store=store, logger=logger, settings=short(summary))
    for turn in range(1_000_000):
        asked[0] = f"u{name}.{turn}"
        session.run(f"<{asked[0]}>" + "y " * chance.choice(_WIDTHS[:4]))


def short(summary) -> ConversationSettings:
    """A budget that a few turns fill."""
    return ConversationSettings(
        max_conversation_tokens=300, truncation_keep_recent=2, truncation_strategy="summarise", summary=summary
    )


def judge_questions(folder: Path, session_id: str, told: list[str], newest: str | None, tally: Tally) -> None:
    """Demand every question in the log, the newest one in the history, and both alike; then go on by one turn."""
    path, store = folder / f"{session_id}.jsonl", FileStore(folder / "stored")
    logger = SessionLogger(folder, session_id, work_dir="/p")
    session = Session(lambda _: "Yes.", session_id, store=store, logger=logger, settings=short(lambda _: "Words."))
    tally.states.add(session.state)
    tally.torn = max(tally.torn, len(find_logged_session(path).problems))
    lost = set(told).difference(_MARK.findall(path.read_text("utf-8", "replace")))
    if lost:
        tally.findings.append(f"{path}: asked and lost: {sorted(lost)[:5]}")
    if newest not in {None, *marks_of(session.messages)}:
        tally.findings.append(f"{path}: {newest} is not in the history")
    if not is_valid(session.messages) or find_logged_session(path).messages != tuple(session.messages):
        tally.findings.append(f"{path}: the log does not read back as the session")
    session.run("And?")
    if find_logged_session(path).messages != tuple(session.messages) or session.messages[-1].text != "Yes.":
        tally.findings.append(f"{path}: the session does not go on")


def run_questions(folder: Path, kills: int, seed: int) -> Tally:
    """Kill sessions that ask so many times, and judge each."""
    chance, tally = random.Random(seed), Tally()
    while tally.kills < kills and not tally.findings:
        session_id, told = f"asks-{tally.kills}", list[str]()
        for n in range(min(KILLS_PER_SESSION, kills - tally.kills)):
            new = run_child(folder, session_id, f"{n}", chance, asking_child)
            tally.kills, told = tally.kills + 1, [*told, *dict.fromkeys(new)]
            if is_begun(folder / f"{session_id}.jsonl"):
                judge_questions(folder, session_id, told, new[-1] if new else None, tally)
            elif told:
                tally.findings.append(f"{session_id}: something was asked, but there is no log")
        tally.shown += len(told)
    return tally


def run_child(folder: Path, session_id: str, name: str, chance: random.Random, child=child) -> list[str]:
    """Let a child talk, kill it at a random step; return what it has told."""
    reading, writing = os.pipe()
    seed, steps, idle = chance.getrandbits(32), chance.randrange(_MANY), chance.randrange(20_000)

    def work() -> None:
        os.close(reading)
        child(folder, session_id, name, seed, writing)

    pid = fork(work)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = list(islice(pipe, steps))
        for _ in range(idle):
            pass
        os.kill(pid, signal.SIGKILL)
        told += pipe.readlines()
    assert wait(pid) == -signal.SIGKILL
    return [line.decode().strip() for line in told if line.endswith(b"\n")]


def is_begun(path: Path) -> bool:
    """Whether a log has an event; its writer may have been killed between making the file and its first line."""
    return path.exists() and holds_events(str(path))


def marks_of(messages) -> list[str]:
    """The marks of a history, in its order; what closes calls that nobody answered has none."""
    return [mark for message in messages for mark in _MARK.findall(message.text)]


def judge(path: Path, told: list[str], kills: int, tally: Tally) -> None:
    """Demand that all that was shown is remembered, in its order, and little else; then go on by one turn."""
    found = find_logged_session(path)
    tally.states.add(found.state)
    tally.torn = max(tally.torn, len(found.problems))
    marks, shown = marks_of(found.messages), [mark for mark in told if mark[0] != "t"]
    lost = set(shown).difference(marks)
    known = iter(marks)
    if lost:
        tally.findings.append(f"{path}: shown and lost: {sorted(lost)[:5]}")
    elif not all(mark in known for mark in shown):
        tally.findings.append(f"{path}: out of order")
    if len(marks) != len(set(marks)) or len(marks) > len(shown) + kills:  # one may have been on its way
        tally.findings.append(f"{path}: {len(marks)} pieces remembered, {len(shown)} shown, {kills} kills")
    whole = sum(message.role == "assistant" and message.partial is None for message in found.messages)
    if found.usage.input != whole:
        tally.findings.append(f"{path}: {whole} whole answers, {found.usage.input} counted")
    for mark in told:
        if mark[0] == "t" and not is_complete(found.messages, f"<u{mark[1:]}>"):
            tally.findings.append(f"{path}: turn {mark} was completed, and is not")


def is_complete(messages, first: str) -> bool:
    """Whether the turn that begins with a user's message has a whole last answer, and all its calls their results."""
    start = next(n for n, message in enumerate(messages) if message.role == "user" and first in message.text)
    end = next((n for n in range(start + 1, len(messages)) if messages[n].role == "user"), len(messages))
    last = messages[end - 1]
    return last.role == "assistant" and not last.tool_calls and all(one.partial is None for one in messages[start:end])


def go_on(path: Path, name: str, chance: random.Random, tally: Tally) -> list[str]:
    """Another turn; the log then reads back as the live session, and as a valid history. Returns what it showed."""
    told: list[str] = []
    before = find_logged_session(path).messages
    with Session.resume(path, agent_of(name, chance, told.append), settings=WHOLE) as session:
        question = f"<u{name}.0>"
        for piece in session.stream(question):
            if isinstance(piece, TextDelta | ToolReturned):
                told += _MARK.findall(piece.text if isinstance(piece, TextDelta) else piece.message.text)
        live = session.messages
    found = find_logged_session(path)
    if list(found.messages) != live or found.state != "complete" or found.usage != session.usage:
        tally.findings.append(f"{path}: the log does not read back as the session")
    if tuple(live[: len(before)]) != before:
        tally.findings.append(f"{path}: what was there before has changed")
    if not is_valid(live):
        tally.findings.append(f"{path}: the history is not valid")
    return told


def run_kills(folder: Path, kills: int, seed: int) -> Tally:
    """Kill conversations so many times, and judge what is remembered after each."""
    chance, tally = random.Random(seed), Tally()
    while tally.kills < kills and not tally.findings:
        session_id = f"talk-{tally.kills}"
        path, told = folder / f"{session_id}.jsonl", list[str]()
        for n in range(min(KILLS_PER_SESSION, kills - tally.kills)):
            told += run_child(folder, session_id, f"{2 * n}", chance)
            tally.kills += 1
            has_events = is_begun(path)
            if has_events:
                judge(path, told, n + 1, tally)
            elif told:
                tally.findings.append(f"{path}: something was shown, but there is no log")
            if has_events and chance.random() < 0.5:
                told += go_on(path, f"{2 * n + 1}", chance, tally)
        tally.shown += len(told)
        tally.turns += sum(mark[0] == "t" for mark in told)
        if not tally.findings:  # what failed is kept for a look
            path.unlink(missing_ok=True)
    return tally


def test_a_killed_conversation_is_remembered_and_goes_on(tmp_path, seed):
    """Killed a few times: nothing that was shown is lost, and each session goes on as one valid history."""
    tally = run_kills(tmp_path, 12, seed)
    print(tally)
    assert tally.findings == []
    assert (tally.kills, tally.shown > 12) == (12, True)


def test_a_question_is_never_lost(tmp_path, seed):
    """Killed while it is saved, while the history is summed up or cut, or while it is answered: it is in the history."""
    tally = run_questions(tmp_path, 8, seed)
    print(tally)
    assert tally.findings == []
    assert (tally.kills, tally.shown > 8) == (8, True)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_questions_killed_at_a_hundred_moments(tmp_path, seed):
    """The same at 100 moments."""
    tally = run_questions(tmp_path, 100, seed)
    print(tally)
    assert tally.findings == []
    assert (tally.kills, tally.torn > 0) == (100, True)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_conversations_killed_at_a_hundred_moments(tmp_path, seed):
    """The same at 100 moments: by then lines were torn, turns completed, and answers broken off."""
    tally = run_kills(tmp_path, 100, seed)
    print(tally)
    assert tally.findings == []
    assert tally.kills == 100
    assert tally.turns > 25
    assert tally.torn
    assert tally.states >= {"interrupted", "complete"}


@pytest.mark.slow
def test_the_harness_finds_what_is_lost(tmp_path, seed, monkeypatch):
    """Were a piece in five shown without being recorded, the judge would say so."""
    recorded = Recorder.delta
    chance = random.Random(seed)
    monkeypatch.setattr(Recorder, "delta", lambda self, text: chance.random() < 0.2 or recorded(self, text))
    tally = run_kills(tmp_path, 60, seed)
    assert "shown and lost" in tally.findings[0]
