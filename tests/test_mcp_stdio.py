"""The server for agents as a process: driven by the official client over stdin and stdout, and it ends when it should."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from sessionlog.logger.session_logger import SessionLogger

SCHEMAS = {
    "session_status": "sessionlog.status/1",
    "usage": "sessionlog.usage/1",
    "budget": "sessionlog.budget/2",
    "recent_sessions": "sessionlog.sessions/2",
    "find": "sessionlog.find/1",
    "context": "sessionlog.context/1",
}
BAD = [
    ("usage", {"limit": "many"}),
    ("context", {"session": "/etc/passwd"}),
    ("recent_sessions", {"colour": "red"}),
    ("session_status", {"session": "s-none"}),
    ("budget", {"name": "weekly"}),
    ("shutdown", {}),
]
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "by hand", "version": "1"},
    },
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home with one session of our own, and nothing else."""
    for name in os.environ:
        if name.startswith(("SESSIONLOG_", "XDG_")):
            monkeypatch.delenv(name)
    folder = tmp_path / "home"
    monkeypatch.setenv("HOME", str(folder))
    log = SessionLogger(folder / ".local/state/sessionlog/sessions", "s-new", model="claude-opus-4-5", prompt="mend it")
    log.llm_request([{"role": "user", "content": "mend it"}])
    log.llm_response("Done.", usage={"input": 800, "output": 200})
    log.close()
    monkeypatch.chdir(tmp_path)
    return folder


def test_a_client_over_stdio(home, capfd):
    """A process of its own: the tools, all six, bad calls, and its end when the client leaves."""
    from mcp import Client, StdioServerParameters

    environment = {**os.environ, "SESSIONLOG_TZ": "UTC"}
    parameters = StdioServerParameters(command=sys.executable, args=["-m", "sessionlog", "mcp"], env=environment)

    async def run():
        async with Client(parameters) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            bad = [await client.call_tool(tool, arguments) for tool, arguments in BAD]
            return (
                names,
                bad,
                {name: await client.call_tool(name, {"words": "mend"} if name == "find" else {}) for name in names},
            )

    names, bad, good = asyncio.run(run())
    assert names == list(SCHEMAS)
    assert [result.is_error for result in bad] == [True] * len(BAD)
    assert [result.content[0].text.partition(":")[0] for result in bad[:2]] == ["usage", "context"]
    assert {name: result.is_error for name, result in good.items()} == dict.fromkeys(SCHEMAS, False)
    schemas = {name: result.structured_content["schema"] for name, result in good.items()}
    assert schemas == SCHEMAS
    assert good["session_status"].structured_content["session"]["id"] == "s-new"
    assert capfd.readouterr().err == ""


class Server:
    """A server's process, spoken to by hand; whatever happens it does not outlive its test."""

    def __init__(self, *options):
        pipe = subprocess.PIPE
        command = [sys.executable, "-m", "sessionlog", "mcp", *options]
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def send_line(self, text):
        """Write a line."""
        self.process.stdin.write(f"{text}\n")
        self.process.stdin.flush()

    def ask(self, message):
        """Write a message and return the answer."""
        self.send_line(json.dumps(message))
        return json.loads(self.process.stdout.readline())


def test_nonsense_on_stdin_ends_nothing(home):
    """A line that is no JSON, arguments that are no object: the next call is answered; stdin's end is the end, exit 0."""
    with Server("--ledger", "own.sqlite") as server:
        server.send_line("what do you cost?")
        assert server.ask(HELLO)["result"]["serverInfo"]["name"] == "sessionlog"
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "usage", "arguments": [1]}}
        assert server.ask(call)["error"]["code"] == -32602
        call = {**call, "id": 3, "params": {"name": "usage", "arguments": {"since": None}}}
        assert server.ask(call)["result"]["structuredContent"]["totals"]["sessions"] == 1
        out, _ = server.process.communicate(timeout=20)
        assert (server.process.returncode, out) == (0, "")
    assert Path("own.sqlite").exists()


def test_ctrl_c_ends_it(home):
    """While it waits for a line that does not come, without a word: 130, as of every command."""
    with Server() as server:
        server.ask(HELLO)
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(10) == 130
        assert server.process.stdout.read() + server.process.stderr.read() == ""


def test_a_client_that_is_gone(home):
    """The client stops reading and closes stdin: the server exits without a message."""
    with Server() as server:
        server.process.stdout.close()
        server.send_line(json.dumps(HELLO))
        server.process.stdin.close()
        assert (server.process.stderr.read(), server.process.wait(20)) == ("", 0)


def test_with_closed_streams_it_exits(home):
    """Started without a stdin there is nothing to do, and that is no mistake."""
    ran = subprocess.run(["/bin/sh", "-c", 'exec "$0" -m sessionlog mcp <&-', sys.executable], capture_output=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
