"""SIGTERM and Ctrl-C in the middle of an answer: it is saved, and the log ends as cancelled."""

import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from sessionlog.conversation.session import Session
from sessionlog.conversation.stores.memory import MemoryStore
from sessionlog.conversation.stores.sqlite import SQLiteStore
from sessionlog.conversation.turns import streams as signals
from sessionlog.messages.message import Message
from tests.conversation.scripted import Scripted, events

PROGRAM = """
import asyncio, sys, time
from contextlib import suppress
from sessionlog.conversation import Agent, Session, SQLiteStore
from sessionlog.logger.session_logger import SessionLogger

folder = sys.argv[1]

def wait():
    print("waiting", flush=True)
    for _ in range(6000):  # a signal just before one long wait would not end it
        time.sleep(0.01)

def plain(messages):
    yield "It "
    yield "is"
    if WHERE == "agent":
        wait()
    yield " seven"

async def coroutine(messages):
    yield "It "
    yield "is"
    print("waiting", flush=True)
    await asyncio.Event().wait()

session = Session(
    coroutine if WHERE in ("async agent", "loop") else plain,
    "s1", store=SQLiteStore(f"{folder}/store.db"), logger=SessionLogger(folder, "s1"),
)

async def main():
    async for piece in session.stream_async("What?"):
        pass

def read():
    for piece in session.stream("What?"):
        if WHERE == "body" and piece.text == "is":
            wait()

if WHERE == "loop":
    asyncio.run(main())
elif WHERE == "with":
    with session:
        session.run("What?")
        wait()
else:
    read()
"""


def ended_by(number, where, folder):
    """Run the program until it waits, send it a signal, and return how it ended."""
    program = f"WHERE = {where!r}\n{textwrap.dedent(PROGRAM)}"
    with subprocess.Popen(
        [sys.executable, "-c", program, str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout.readline() == "waiting\n", process.stderr.read()
        os.kill(process.pid, number)
        process.stdout.read()
        return process.wait(), process.stderr.read()


@pytest.mark.parametrize("where", ["agent", "body", "async agent", "loop"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_in_the_middle_of_an_answer(tmp_path, number, where):
    """Seed 001's shutdown: while the agent is waited for, in the body of the loop, in a loop of ours and of the caller."""
    code, errors = ended_by(number, where, tmp_path)
    assert code == (143 if number == signal.SIGTERM else -signal.SIGINT), errors
    with SQLiteStore(tmp_path / "store.db") as store:
        saved = Session(Scripted(), "s1", store=store)
    assert saved.messages == [Message.user("What?"), Message.assistant("It is", partial="cancelled")]
    assert saved.state == "cancelled"
    assert [(type_, data.get("status")) for type_, data in events(tmp_path)][-1] == ("session.end", "cancelled")
    assert Session.resume("s1", Scripted(), directory=tmp_path).messages == saved.messages


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_between_two_turns_of_a_with(tmp_path, number):
    """The session ends as cancelled, with what was said."""
    code, errors = ended_by(number, "with", tmp_path)
    assert code == (143 if number == signal.SIGTERM else -signal.SIGINT), errors
    (_, end) = events(tmp_path)[-1]
    assert end["status"] == "cancelled"
    assert json.dumps(end).count("seven") == 0
    resumed = Session.resume("s1", Scripted(), directory=tmp_path)
    assert [message.text for message in resumed.messages] == ["What?", "It is seven"]


def test_signals_do_afterwards_what_they_did():
    """Nothing stays behind."""
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    session = Session(Scripted(["1", "2"], "3"))
    stream = session.stream("a")
    next(stream)
    assert signal.getsignal(signal.SIGTERM) is signals._on_signal
    with Session(Scripted("1")) as other:
        other.run("b")
    stream.close()
    session.run("c")
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def test_what_somebody_else_has_said_of_a_signal_stays():
    """A program's own handler, and ignoring it."""
    seen = []
    previous = signal.signal(signal.SIGTERM, lambda *_: seen.append(True))
    try:
        for _ in Session(Scripted(["1"])).stream("a"):
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, previous)
    assert seen


def test_every_stream_is_told():
    """Two sessions at once: both are kept, and the exception comes once."""
    store = MemoryStore()
    streams = [Session(Scripted(["1", "2"]), name, store=store).stream("a") for name in ("s1", "s2")]
    for stream in streams:
        next(stream)
    with pytest.raises(SystemExit) as caught:
        os.kill(os.getpid(), signal.SIGTERM)
    assert caught.value.code == 143
    assert [store.load(name)["state"] for name in ("s1", "s2")] == ["cancelled", "cancelled"]
    assert [list(stream) for stream in streams] == [[], []]


def test_a_handler_cancels():
    """`cancel` takes no lock, so a signal handler may call it."""
    session = Session(lambda messages: (os.kill(os.getpid(), signal.SIGUSR1) or text for text in ("1", "2", "3")))
    previous = signal.signal(signal.SIGUSR1, lambda *_: session.cancel())
    try:
        response = session.run("a")
    finally:
        signal.signal(signal.SIGUSR1, previous)
    assert (response.status, response.text) == ("cancelled", "1")
