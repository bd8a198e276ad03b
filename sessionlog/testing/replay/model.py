"""ReplayModel: a recorded log stands in for the model.

    with ReplayModel("tests/runs/fix.jsonl") as replay:
        agent.run_sync("Fix the bug", model=replay.pydantic_ai())              # pydantic-ai
        OpenAI(http_client=httpx2.Client(transport=replay.transport()))        # any SDK on httpx or httpx2
        replay([{"role": "user", "content": "Fix the bug"}]).message.text      # a plain function

The invariant: a request gets the recorded answer to the same request, or fails; nothing is ever sent. `request` has the
rule of what is the same request.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from sessionlog.archive.find import open_session
from sessionlog.conversation.turns.pieces import Reply
from sessionlog.errors import AgentError, ReplayMiss
from sessionlog.messages.message import Message
from sessionlog.messages.read import read_entry
from sessionlog.settings import session_directory
from sessionlog.testing.replay.matcher import By, Matcher, Rules
from sessionlog.testing.replay.recording import Recording, read_recordings
from sessionlog.testing.replay.request import PARTS, read_request, without_system

if TYPE_CHECKING:
    from sessionlog.sources.protocol import Env
    from sessionlog.testing.replay.transport import ReplayTransport


class ReplayModel:
    """Answers requests from a log: native, or of any agent whose log holds the answers.

    Args:
        target: A log, or a session's id, its beginning or its end.
        session: The session in a log that holds several; None for the one that `target` names, or the first.
        by: `key` gives a request the answer of the same recorded request; `order` gives the answers in order, whatever
            is asked.
        ignore: Parts of requests that are not compared, of `model`, `system`, `tools` and `parameters`.
        strict_end: Whether recordings that were not asked for fail at the end of the context.
        directory: The folder of sessionlog's own sessions; None for the usual one.
        env: The environment, which gives the folders of agents; None for this process's.

    Raises:
        LogNotReadable: Nothing matches, or the log cannot be read.
        AmbiguousSession: Several sessions match.
        InvalidHistory: There is no answer in it, or not all of its answers.
        ValueError: `by` or `ignore` has a value that does not exist.
    """

    def __init__(
        self,
        target: str | os.PathLike[str],
        session: str | None = None,
        *,
        by: By = "key",
        ignore: Iterable[str] = (),
        strict_end: bool = False,
        directory: str | None = None,
        env: Env | None = None,
    ) -> None:
        ignored = _check_options(by, ignore)
        env = os.environ if env is None else env
        with open_session(os.fspath(target), directory or session_directory(env), env) as (log, named, entry):
            recorded = read_recordings(log, session or named)
            path = log.path if entry is None else entry.path
        left_out = tuple(part for part in PARTS if part in (*recorded.left_out, *ignored))
        recordings = (
            recorded.recordings if "system" not in left_out else tuple(map(_without_system, recorded.recordings))
        )
        rules = Rules(path=path, recordings=recordings, left_out=left_out, by=by, damaged=recorded.damaged)
        self._matcher, self._strict_end = Matcher(rules), strict_end

    @property
    def path(self) -> str:
        """The log."""
        return self._matcher.rules.path

    @property
    def recordings(self) -> tuple[Recording, ...]:
        """Its requests with their answers, in order."""
        return self._matcher.rules.recordings

    @property
    def left_out(self) -> tuple[str, ...]:
        """Parts of requests that are not compared: the log does not hold them, or they are ignored."""
        return self._matcher.rules.left_out

    @property
    def unused(self) -> tuple[Recording, ...]:
        """The recordings that were not asked for."""
        return self._matcher.unused

    @property
    def misses(self) -> tuple[ReplayMiss, ...]:
        """The requests that no recording was for, as errors; the code under test may have caught some."""
        return self._matcher.misses

    def fork(self, at: int, model: Any = None) -> ReplayModel:
        """Return a replay of the recordings before number `at`.

        Args:
            at: The number of the first request that is not answered from the log, from 1.
            model: What answers from there on, once all recordings before were given: a model of pydantic-ai, a
                transport of httpx or httpx2, or a function, as the replay is used. None: nothing does.

        Raises:
            ValueError: There is no such recording.
        """
        self._check_number(at)
        return self._copy(recordings=self.recordings[: at - 1], live=model)

    def edit(self, number: int, *, text: str = "", tool_calls: Sequence[Any] = (), error: str = "") -> ReplayModel:
        """Return a replay in which one answer is another one, or an error.

        The recordings after it are given as before: to the same requests, which mostly repeat the recorded answer. So
        an edited answer ends the run, or `fork` at the number after it lets a model continue.

        Args:
            number: The number of the recording, from 1.
            text: The text of the answer.
            tool_calls: Its tool calls, as `{"name": …, "arguments": {…}}` or in the format of a provider.
            error: The error in place of an answer, as `429 rate_limit_error: Slow down`.

        Raises:
            ValueError: There is no such recording.
        """
        self._check_number(number)
        recording = self.recordings[number - 1]
        [message] = read_entry({"role": "assistant", "content": text, "tool_calls": list(tool_calls)}).messages
        calls = tuple(
            call if call.id else replace(call, id=f"call_{number}_{index}")
            for index, call in enumerate(message.tool_calls, start=1)
        )
        answer = replace(recording.answer, text=message.text, thoughts="", calls=calls, finish_reason=None)
        edited = replace(recording, answer=answer, error=error)
        return self._copy(recordings=(*self.recordings[: number - 1], edited, *self.recordings[number:]))

    def _check_number(self, number: int) -> None:
        if not 1 <= number <= len(self.recordings):
            raise ValueError(f"there is no recording {number}: {self.path} has 1 to {len(self.recordings)}")

    def _copy(self, **changes: Any) -> ReplayModel:
        copied = copy(self)
        copied._matcher = Matcher(replace(self._matcher.rules, **changes))  # noqa: SLF001 - of this class
        return copied

    def __call__(self, messages: Any, *, model: str | None = None, **options: Any) -> Any:
        """Return the recorded answer to messages, which may have the format of any provider.

        Args:
            messages: The whole prompt; a text is one message of the user.
            model: The model asked for; None is not compared.
            options: `system`, `tools`, and parameters such as `temperature`.

        Returns:
            A `Reply`: `message` with text and tool calls, usage, model. After a fork, what the live function returns.

        Raises:
            ReplayMiss: There is no recording of this request.
            AgentError: The recording is an error.
        """
        given = [messages] if isinstance(messages, str | Mapping | Message) else list(messages)
        request = read_request({**options, "messages": given, "model": model})
        recording = self._matcher.find(request, unknown=() if model else ("model",))
        if recording is None:
            return self._matcher.rules.live(messages, **({"model": model} if model else {}), **options)
        if recording.error:
            raise AgentError(recording.error)
        answer = recording.answer
        return Reply(
            message=Message.assistant(answer.text, tool_calls=answer.calls), usage=answer.usage, model=answer.model,
            provider=recording.provider or None, finish_reason=answer.finish_reason,
        )  # fmt: skip

    def transport(self, live: Any = None) -> ReplayTransport:
        """Return a transport for clients of httpx and httpx2, sync and async.

        It answers OpenAI's chat completions and responses, Anthropic's messages and Gemini's generateContent, whole or
        as a stream, as the request asks; the recording may be of another format. A recorded error has its HTTP status.
        A miss has the status 404 and its text as the body, so that SDKs do not try again; `check` raises it.

        Args:
            live: Not used: it is what `--sessionlog-record` sends the requests with.
        """
        from sessionlog.testing.replay.transport import ReplayTransport

        del live
        return ReplayTransport(self._matcher)

    def pydantic_ai(self, model: Any = None) -> Any:
        """Return a model for agents of pydantic-ai; `request` and `request_stream` give recorded answers.

        Args:
            model: The model that the log was recorded with, or its name: `--sessionlog-record` asks it. Here its name
                is compared with the recorded one; None is not compared.

        Raises:
            MissingExtra: pydantic-ai is not installed.
        """
        from sessionlog.testing.replay.pydantic_ai import ReplayedModel

        return ReplayedModel(self._matcher, model)

    def check(self) -> None:
        """Raise the first miss, which the code under test may have caught; with `strict_end`, if recordings are unused.

        Raises:
            ReplayMiss: A request had no recording, or a recording was not asked for.
        """
        self._matcher.check(all_used=self._strict_end)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.check()


def _check_options(by: str, ignore: Iterable[str]) -> tuple[str, ...]:
    if by not in ("key", "order"):
        raise ValueError(f"by {by!r}: use 'key' or 'order'")
    ignored = (ignore,) if isinstance(ignore, str) else tuple(ignore)
    wrong = [part for part in ignored if part not in PARTS or part == "messages"]
    if wrong:
        raise ValueError(f"ignore {wrong[0]!r}: use {', '.join(part for part in PARTS if part != 'messages')}")
    return ignored


def _without_system(recording: Recording) -> Recording:
    request = recording.request
    return recording if request is None else replace(recording, request=without_system(request))
