"""A chat without a model: a scripted agent in a module of its own, in this process or on a pseudo-terminal."""

import fcntl
import os
import re
import select
import struct
import subprocess
import sys
import termios
import time

import pytest

from sessionlog.cli import main
from sessionlog.cli.repl.chat import Chat
from sessionlog.cli.repl.outputs import PlainOutput
from sessionlog.conversation.agent import Agent
from sessionlog.conversation.turns.pieces import Reply, TextDelta
from sessionlog.conversation.turns.tool import tool
from sessionlog.events.tokens import TokenUsage
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.messages.message import Message, ToolRequest

PATIENCE = 30
DESK = '''
import threading
from sessionlog.conversation import Agent, Message, Reply, TextDelta, ToolRequest, tool
from sessionlog.events.tokens import TokenUsage


def answer(messages):
    """Says what it was told, looks when it is asked to, fails when it is asked to, and can be slow."""
    last = messages[-1]
    if last.role == "tool":
        text = f"It says {last.text}."
    elif last.text.startswith("look"):
        yield ToolRequest("c1", "look", {"path": "notes.txt"})
        return
    elif last.text.startswith("fail"):
        yield "I would "
        raise ValueError("no such thing\\x1b[2J")
    elif last.text.startswith("wait"):
        yield "one two "
        for _ in range(6_000):  # in pieces: a signal that comes just before a wait does not end it
            threading.Event().wait(0.01)
        text = "three"
    else:
        text = f"You said: {last.text} ({sum(m.role != 'system' for m in messages)} messages)"
    for word in text.split(" "):
        yield f"{word} "
    yield Reply(message=Message.assistant(" ".join(text.split(" ")) + " "), usage=TokenUsage(input=80, output=20),
                model="m-1", provider="desk", cost_usd=0.25, finish_reason="stop")


@tool
def look(path: str) -> str:
    """Read a file."""
    return "nothing much"


agent = Agent(answer, system="Be brief.", tools=[look], model="m-1")
'''


@pytest.fixture
def desk(home, tmp_path, monkeypatch):
    """The current folder, with an agent in `desk.py`."""
    (tmp_path / "desk.py").write_text(DESK, "utf-8")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("desk", None)


@pytest.fixture
def sessions(home):
    """Where sessions are unless told otherwise."""
    return home / ".local" / "state" / "sessionlog" / "sessions"


def answer(messages):
    """A scripted agent of this process."""
    last = messages[-1]
    if last.role == "user" and last.text.startswith("look"):
        yield ToolRequest("c1", "look", {"path": "notes.txt"})
        return
    if last.text.startswith("fail"):
        yield "I would "
        raise ValueError("no such thing\x1b[2J")
    if last.text.startswith("exit"):
        yield "I would "
        raise SystemExit(3)
    if last.text.startswith("stop"):
        yield "one two "
        raise KeyboardInterrupt
    text = f"I heard {last.text!r}."
    yield TextDelta(text)
    yield Reply(
        message=Message.assistant(text),
        usage=TokenUsage(input=80, output=20),
        model="m-1",
        provider="desk",
        cost_usd=0.25,
    )


@tool
def look(path: str) -> str:
    """Read a file."""
    return "nothing much"


@pytest.fixture
def chat(home, sessions):
    """A chat with the scripted agent, told as to a pipe."""
    made = []

    def begin(output=None, agent=None):
        agent = agent or Agent(answer, system="Be brief.", tools=[look], model="m-1")
        logger = SessionLogger(sessions, metadata={"agent": "desk:agent"})
        made.append(
            Chat(
                session=agent.session(logger=logger),
                name="desk:agent",
                path=logger.path,
                output=output or PlainOutput(),
            )
        )
        made[-1].open()
        return made[-1]

    yield begin
    for one in made:
        one.session.close()


_AT_TERMINAL = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from sessionlog.cli import main
sys.exit(main())
"""
"""The terminal becomes the one that controls the process: Ctrl-C is its signal."""


class Person:
    """Somebody at a terminal, who waits for what is shown, and types.

    Attributes:
        shown: All that was shown, without colours.
    """

    def __init__(self, arguments, *, columns=80, **environment):
        self._fd, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
        command = [sys.executable, "-c", _AT_TERMINAL, *arguments]
        self.running = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, env={**os.environ, **environment},
        )  # fmt: skip
        os.close(theirs)
        self._raw, self._seen = b"", 0

    @property
    def raw(self):
        """With colours."""
        return self._raw.decode("utf-8", "replace")

    @property
    def shown(self):
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.raw).replace("\r\n", "\n")

    def types(self, text):
        r"""Type, as on a keyboard: `\r` is return, `\x03` is Ctrl-C."""
        os.write(self._fd, text.encode())

    def sees(self, text, again=None):
        """Wait until something is shown that was not waited for before; return what was shown up to it.

        `again` is called where nothing comes: a signal just before a wait is only heard by the next one.
        """
        deadline = time.monotonic() + PATIENCE
        while (place := self.shown.find(text, self._seen)) < 0:
            there_is_more = time.monotonic() < deadline and self._reads(again)
            assert there_is_more, f"{text!r} is not in {self.shown[self._seen :]!r}"
        before, self._seen = self.shown[self._seen : place], place + len(text)
        return before

    def stops(self, sees):
        """Press Ctrl-C until something is seen; return what was shown before it."""
        self.types("\x03")
        return self.sees(sees, again=lambda: self.types("\x03"))

    def is_told_to_end(self, number):
        """Send a signal until it is heard; return the exit code."""
        os.kill(self.running.pid, number)
        return self.ends(again=lambda: os.kill(self.running.pid, number))

    def ends(self, again=None):
        """Wait for the end; return the exit code."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self._reads(again):
            pass
        return self.running.wait(PATIENCE)

    def close(self):
        """Go away."""
        if self.running.poll() is None:
            self.running.kill()
        self.running.wait(PATIENCE)
        os.close(self._fd)

    def _reads(self, again):
        """Read what there is; False when there will be no more."""
        if not select.select([self._fd], [], [], 1)[0]:
            is_running = self.running.poll() is None
            if is_running and again is not None:
                again()
            return is_running
        try:
            piece = os.read(self._fd, 65_536)
        except OSError:  # nobody holds the terminal any more
            return False
        self._raw += piece
        return bool(piece)


@pytest.fixture
def person(desk):
    """Begin a chat on a pseudo-terminal."""
    people = []

    def begin(*arguments, **settings):
        people.append(Person(["chat", *arguments], **settings))
        return people[-1]

    yield begin
    for one in people:
        one.close()


@pytest.fixture
def piped(desk, monkeypatch, capsys):
    """Run a chat in this process whose stdin is a pipe with these lines; return code, stdout, stderr."""

    def run(*lines, arguments=("desk:agent",)):
        reading, writing = os.pipe()
        os.write(writing, "".join(f"{line}\n" for line in lines).encode())
        os.close(writing)
        with open(reading, encoding="utf-8") as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            code = main(["chat", *map(str, arguments)])
        return code, *capsys.readouterr()

    return run
