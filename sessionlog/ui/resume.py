"""The command that resumes a session in its own agent.

The commands are those of the agents' documentation. They are documented, not run: no test starts an agent with them.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from sessionlog.analytics.sessions import SessionSummary
from sessionlog.events.names import UNKNOWN

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "claude-code": ("claude", "--resume"),
    "codex": ("codex", "resume"),
    "gemini": ("gemini", "--resume"),
    "opencode": ("opencode", "--session"),
}
"""Source → the words before the session's id. Agents whose command is not documented are left out."""


def resume_command(session: SessionSummary) -> str | None:
    """Return a shell command that resumes a session in its folder; None if its agent has none or its log is gone."""
    words = COMMANDS.get(session.source)
    if words is None or session.archived or session.session.startswith("-"):
        return None
    command = shlex.join([*words, session.session])
    return command if session.project in ("", UNKNOWN) else f"cd {shlex.quote(session.project)} && {command}"
