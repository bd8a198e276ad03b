"""`sessionlog mcp`: an MCP server on stdin and stdout, for agents that ask about their own use."""

from __future__ import annotations

import os
import signal
import sys

from sessionlog.cli.output import note

_HINT = "waiting for an agent's messages on stdin; `sessionlog mcp --help` shows how to configure a client"


def mcp(*, ledger: str | None, allow_paths: bool) -> None:
    """Answer an agent's questions over MCP, on stdin and stdout, until stdin ends.

    Tools: session_status, usage, budget, recent_sessions, find, context. All of them only read, and only logs in the
    folders where agents write; --allow-paths lets a client name any other log.

    Claude Code: claude mcp add sessionlog -- sessionlog mcp

    Other clients, in their configuration:

    {"mcpServers": {"sessionlog": {"command": "sessionlog", "args": ["mcp"]}}}

    Example: sessionlog mcp
    """
    from sessionlog.mcp_server import serve

    if sys.stdin is not None and sys.stdin.isatty():
        note(f"sessionlog: {_HINT}")
    # A thread blocks on stdin and cannot be woken. The ledger is written in transactions, so exiting at once is safe.
    before = signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    try:
        env = {**os.environ, "SESSIONLOG_LEDGER": os.path.abspath(ledger)} if ledger else None
        serve(note, env=env, allow_paths=allow_paths)
    finally:
        signal.signal(signal.SIGINT, before)
