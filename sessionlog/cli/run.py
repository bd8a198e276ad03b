"""`sessionlog run`: run any command, and record what it asks models for and what they answer."""

from __future__ import annotations

import os
import shlex
from contextlib import suppress

from sessionlog.cli.output import Exit, fail, note
from sessionlog.errors import SessionLogError
from sessionlog.settings import session_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessionlog.proxy.run import Run

_EXAMPLE = "sessionlog run -- claude -p 'Fix the tests'"


def run(*, command: list[str] | None, upstreams: list[str] | None, quiet: bool, directory: str | None) -> None:
    """Run a command; its requests to models pass through a proxy on this machine, which records them in a session.

    The command keeps its terminal, its output and its exit code; notes go to stderr, before and after it. Agents that
    are known are pointed at the proxy their own way, other programs by the variables of the usual SDKs.

    Example: sessionlog run -- claude -p "Fix the tests"
    """
    if not command:
        fail(f"there is no command to run. Example: {_EXAMPLE}")
    from sessionlog.proxy.child import CommandNotStarted
    from sessionlog.proxy.run import record_command

    def show(text: str) -> None:
        if not quiet:
            note(f"sessionlog: {text}")

    routes = dict(_parse_upstream(text) for text in upstreams or ())
    try:
        ended = record_command(command, os.environ, upstreams=routes, directory=directory, note=show)
    except CommandNotStarted as error:
        fail(str(error), error.code)
    with suppress(SessionLogError, OSError):  # the exit code is the command's, whatever can be shown of it
        for text in () if quiet else _summary(ended):
            show(text)
    if ended.exit_code:
        raise Exit(ended.exit_code)


def _parse_upstream(text: str) -> tuple[str, str]:
    """Return the name and the URL of `NAME=URL`."""
    name, equals, url = text.partition("=")
    if not (name and equals and url):
        fail(f"--upstream {text!r}: give NAME=URL, such as anthropic=https://llm.example.com")
    return name, url


def _summary(ended: Run) -> Iterator[str]:
    """Yield what was recorded, and what was not."""
    if ended.refused:
        yield f"{ended.refused} WebSocket connections were refused: only HTTP is recorded"
    if not ended.health.written:
        causes = ", ".join(sorted(ended.health.dropped_by))
        yield f"nothing was recorded: {ended.path} cannot be written ({causes}); --dir FOLDER records elsewhere"
        return
    yield from (text.removeprefix("sessionlog: ") for text in ended.notices)
    if not ended.health.ok:
        causes = ", ".join(sorted(ended.health.dropped_by))
        yield f"{ended.health.dropped} of {ended.health.emitted} events were not recorded ({causes}): {ended.path}"
    known = os.path.dirname(ended.path) == session_directory(os.environ)
    yield f"recorded {_sums(ended)}: sessionlog replay {ended.session_id if known else shlex.quote(ended.path)}"


def _sums(ended: Run) -> str:
    """Return requests, tokens and cost: `12 requests, 45,210 tokens, ~$0.31`."""
    if not ended.requests:
        return "no requests to models"
    from sessionlog.analytics.usage import aggregate_usage
    from sessionlog.render.numbers import cost_text

    totals = aggregate_usage(ended.path).totals
    parts = [f"{totals.requests:,} request{'s' * (totals.requests != 1)}", f"{totals.total_tokens:,} tokens"]
    if totals.cost_usd is not None:
        parts.append(cost_text(totals.cost_usd, estimated=totals.known_cost_usd is None))
    return ", ".join(parts)
