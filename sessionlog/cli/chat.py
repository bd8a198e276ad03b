"""`sessionlog chat`: talk with any agent; everything is recorded, and a session goes on where it was left."""

from __future__ import annotations

from typing import Annotated

import typer

from sessionlog.cli.declared import Directory
from sessionlog.cli.output import fail


def chat(
    agent: Annotated[
        str | None,
        typer.Argument(
            metavar="MODULE:AGENT",
            help="Who answers: module:agent, or path/to/file.py:agent.",
        ),
    ] = None,
    *,
    resume: Annotated[
        str | None, typer.Option(metavar="FILE|SESSION", help="Go on with a session, also after a crash.")
    ] = None,
    system: Annotated[str | None, typer.Option(metavar="TEXT", help="What the agent is told to be.")] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="The model that a client is to ask.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="What happens, one JSON object a line.")] = False,
    directory: Directory = None,
) -> None:
    """Talk with an agent: a function, a pydantic-ai agent, an OpenAI or Anthropic client, an Agent. All is recorded.

    The agent is imported from the current folder. In the chat, /help says what there is. Piped, each line is a turn,
    answers go to stdout, and the exit code is 1 if a turn failed.

    Example: sessionlog chat my_agents:helper --system "Be brief."
    """
    if resume is not None and system is not None:
        fail("choose only one of --resume and --system: a session that goes on has its system text")
    from sessionlog.cli.repl.start import start  # noqa: PLC0415 - only who chats pays for it

    start(agent, resume=resume, system=system, model=model, directory=directory, as_json=as_json)
