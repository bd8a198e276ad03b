"""`sessionlog chat`: talk with any agent; everything is recorded, and a session can be resumed."""

from __future__ import annotations

from sessionlog.cli.output import fail


def chat(
    *,
    agent: str | None,
    resume: str | None,
    system: str | None,
    model: str | None,
    as_json: bool,
    directory: str | None,
) -> None:
    """Talk with an agent: a function, a pydantic-ai agent, an OpenAI or Anthropic client, an Agent. All is recorded.

    The agent is imported from the current folder. In the chat, /help lists the commands. Piped, each line is a turn,
    answers go to stdout, and the exit code is 1 if a turn failed.

    Example: sessionlog chat my_agents:helper --system "Be brief."
    """
    if resume is not None and system is not None:
        fail("choose only one of --resume and --system: a resumed session keeps its system text")
    from sessionlog.cli.repl.start import start

    start(agent, resume=resume, system=system, model=model, directory=directory, as_json=as_json)
