"""Commands that resume a session in its own agent."""

import shlex
from dataclasses import replace

import pytest

from sessionlog.analytics.sessions import SessionSummary
from sessionlog.ui.resume import COMMANDS, resume_command

SESSION = SessionSummary(
    source="claude-code", session="abc", path="/x", start_ns=0, last_ns=0, status="success", project="/src/my api",
    harness="", route="", models=(), duration_ms=0, prompt="", error="", requests=1, failed_requests=0, input_tokens=0,
    output_tokens=0, cache_read_tokens=0, cache_write_tokens=0, reasoning_tokens=0, known_nano=None, estimated_nano=None,
    cost_is_partial=False, counted=True,
)  # fmt: skip


@pytest.mark.parametrize("source", COMMANDS)
def test_the_command_names_folder_and_id(source):
    """The session's folder and id are single words of the shell."""
    command = resume_command(replace(SESSION, source=source, session="a b;c"))
    assert shlex.split(command) == ["cd", "/src/my api", "&&", *COMMANDS[source], "a b;c"]


@pytest.mark.parametrize("change", [{"source": "llm"}, {"archived": True}, {"session": "--dangerous"}])
def test_no_command_where_none_would_work(change):
    """Other agents, deleted logs and ids that an agent would read as an option have none."""
    assert resume_command(replace(SESSION, **change)) is None
