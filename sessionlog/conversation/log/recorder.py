"""Recorder: writes a session into its log, so that the session can be read back from the log alone.

The rule is one of position: after an `llm.request` the history is the first `earlier_messages` messages of the one
before (none where it does not say) and then its `messages`. A request holds all that is new since the last one, answers
and tool results included; what happens between requests has events of its own. Where the history does not continue the
logged one (it was cut, cleared, or taken back), the next request is whole.

Invariant: the recorder counts only what is in the file. An event that was not written changes nothing here, so the next
request makes good for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sessionlog.conversation.history.truncation import Truncation
from sessionlog.conversation.history.weight import cap_message, cap_text, size_of, size_of_json
from sessionlog.conversation.log.event_codec import (
    answer_of,
    json_options,
    pieces_of,
    result_of,
    spell_answer,
    spell_cut,
    spell_result,
    spell_tool,
)
from sessionlog.conversation.turns.pieces import Reply, ToolReturned
from sessionlog.errors import StaleSession
from sessionlog.events.tokens import TokenUsage
from sessionlog.logger.event_writer import EventWriter
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.logger.tool_timer import describe
from sessionlog.messages.message import Message
from sessionlog.messages.message_json import message_to_dict

if TYPE_CHECKING:
    from sessionlog.conversation.log.logged_session import LoggedSession

Json = Any
LONG = 4 << 20
"""Characters of messages in one event; more are written in several, because readers decode lines of 8 MiB."""


class Recorder:
    """Writes one session's events. Every method does nothing without a logger.

    None of them raises, except for a logger that was asked to (`on_error="raise"`).
    """

    def __init__(self, logger: SessionLogger | None) -> None:
        self._logger = logger
        self._logged: list[Message] = []  # what the log gives, read back now
        self._earlier = 0  # of these, how many the next request need not repeat
        self._starts_over = True  # the log has an event after which the next request holds everything
        self._pieces: list[str] = []  # of an answer that is not whole yet
        self._logged_system: str | None = None
        self._system: str | None = None
        self._inherited: dict[int, Message] = {}  # from a parent, and so no turns of this session
        self._has_ended = False
        self._last_seq: int | None = None
        self._key = object()
        self._others = 0 if logger is None else logger.foreign_end()

    @property
    def path(self) -> str | None:
        """The log's file."""
        return None if self._logger is None else self._logger.path

    @property
    def session_id(self) -> str | None:
        """The log's session."""
        return None if self._logger is None else self._logger.session_id

    @property
    def last_seq(self) -> int | None:
        """The number of the log's last event; None without one."""
        written = None if self._logger is None else self._logger.last_seq
        return self._last_seq if written is None else written

    def begin(
        self,
        *,
        system: str | None,
        parent: Mapping[str, Json] | None = None,
        inherited: Sequence[Message] = (),
        usage: TokenUsage | None = None,
    ) -> None:
        """Write session.start, and what a session begins with.

        Args:
            system: The system's text.
            parent: Of a fork `{"session", "path", "seq"}`: where it leaves its parent.
            inherited: The history that it begins with.
            usage: What that history has used, where it counts as this session's own.
        """
        self._system = system
        if self._logger is None:
            return
        if self._logger.owner is None:
            self._logger.owner = self._key
        if not self._is_alone():
            return  # what is there is another session's: `check_alone` raises
        start = _given({"system_prompt": system or None, "parent": parent})
        if self._logger.is_new() and self._emit("session.start", start):
            self._logged_system = system
        if inherited:
            reason = "fork" if parent else "restored"
            more = _given({"parent": parent, "usage": usage.to_dict() if usage else None})
            self._inherited = {id(message): message for message in inherited} if parent else {}
            self._add(inherited, reason, is_earlier=True, **more)

    def go_on(self, session: LoggedSession, *, system: str | None = None) -> None:
        """Continue the log of a session; nothing is written yet."""
        self._logged, self._earlier, self._starts_over = list(session.logged), session.earlier, False
        self._inherited = {id(message): message for message in session.inherited}
        self._logged_system, self._last_seq = session.system, session.last_seq
        self._system = session.system if system is None else system
        if self._logger is not None:
            self._others, self._logger.owner = session.size, self._key
            self._logger.begin_run(copy(session.run))

    def check_alone(self) -> None:
        """Check that no other writer has appended to the log: two writers would corrupt the history.

        It costs one stat. A log that was deleted or replaced meanwhile is written anew.

        Raises:
            StaleSession: Another writer has appended to the log since this recorder has, or since it was read; or
                another session goes on with the same logger.
        """
        if self._is_alone():
            return
        raise StaleSession(
            f"{self.path}: another writer has appended to the log of session {self.session_id!r} meanwhile; "
            f"Session.resume({self.path!r}, …) goes on from what they wrote, fork() from what is here, "
            "in a log of its own"
        )

    def _is_alone(self) -> bool:
        logger = self._logger
        if logger is None:
            return True
        return logger.owner in {None, self._key} and logger.foreign_end() <= self._others

    def request(
        self,
        history: Sequence[Message],
        *,
        model: str | None = None,
        provider: str | None = None,
        tools: Sequence[Any] = (),
        attempt: int = 1,
        options: Mapping[str, Json] | None = None,
    ) -> None:
        """Write that an agent is asked: what of the history is new, the tools, and the options that are JSON."""
        if self._logger is None:
            return
        if self._has_ended:
            self._logger.begin_run()
            self._has_ended = False
        self._pieces = []
        earlier = self._log_ahead(history)
        fields = {
            "model": model,
            "provider": provider,
            **json_options(options or {}),
            "system": (self._system or "") if self._system != self._logged_system else None,
            "tools": [spell_tool(tool) for tool in tools] or None,
            "attempt_index": attempt if attempt > 1 else None,
            "messages": [message_to_dict(message) for message in history[earlier:]],
            "earlier_messages": earlier or None,  # the last: scans look for it at a line's end
        }
        if self._emit("llm.request", _given(fields)):
            self._logged = list(history)
            self._earlier, self._starts_over = len(self._logged), False
            self._logged_system = self._system

    def delta(self, text: str) -> None:
        """Write a piece of the answer, before anybody is shown it."""
        for start in range(0, len(text), LONG):
            piece = text[start : start + LONG]
            if self._emit("llm.delta", {"content": piece}):
                self._pieces.append(piece)

    def response(
        self,
        message: Message | None,
        *,
        reply: Reply | None = None,
        latency_ms: float | None = None,
        error: str | BaseException | None = None,
        partial: str | None = None,
        attempt: int = 1,
    ) -> None:
        """Write the answer, whole or `partial`; or that there was none, and why.

        Without a message, the pieces of text that were written stand for it, if there are any. A `reply` says what else
        is known of a whole answer: its tokens, its model, what it cost.
        """
        given = reply or Reply(message=Message.assistant())
        if message is not None and partial is not None:
            message = replace(message, partial=partial)
        message = None if message is None else cap_message(message)
        known = {
            **({"partial": partial} if message is None else spell_answer(message)),
            "usage": None if given.usage is None else given.usage.to_dict(),
            "cost_usd": given.cost_usd,
            "latency_ms": latency_ms,
            "model": given.model,
            "attempt": {"provider_system": given.provider} if given.provider else None,
            "attempt_index": attempt if attempt > 1 else None,
            "finish_reason": given.finish_reason,
            "error": describe(error) if isinstance(error, BaseException) else error,
        }
        fields, streamed = _given(known), "".join(self._pieces)
        if message is not None and answer_of(fields, streamed) != message:
            _write_whole(fields, message, "content")
        if self._emit("llm.response", fields):
            said = message or answer_of(fields, streamed)
            self._logged += [said] if said else []
            self._pieces = []

    def tool(self, returned: ToolReturned) -> None:
        """Write a tool's run and its result."""
        request, message = returned.request, cap_message(returned.message)
        duration = None if returned.duration_ms is None else round(returned.duration_ms, 3)
        fields = _given({**spell_result(request, message), "duration_ms": duration, "error": returned.error})
        if size_of_json(request.arguments) > LONG:
            fields["input"] = cap_text(str(request.arguments))  # the answer that asks for it has them all
        if result_of(fields, request.id, request.name) != message:
            _write_whole(fields, message, "output")
        if self._emit("tool.call", fields):
            self._logged.append(message)

    def popped(self, count: int) -> None:
        """Write that the last `count` messages were taken back."""
        self._end_partial()
        if count > 0 and self._emit("history.pop", {"count": count}):
            self._start_over(self._logged[:-count])

    def cleared(self) -> None:
        """Write that the history begins anew."""
        self._end_partial()
        if self._emit("history.clear", {}):
            self._start_over([])

    def truncated(self, before: Sequence[Message], after: Sequence[Message], truncation: Truncation) -> None:
        """Write what was dropped of the history, and what stands in its place."""
        self._end_partial()
        if not truncation.is_over_budget and list(before) == list(after):
            return
        self.sync(before)
        fields = spell_cut(before, after, truncation)
        if self._emit("compaction.end", _given(fields)) and not fields["no_compaction"]:
            self._start_over(list(after))

    def sync(self, history: Sequence[Message], *, state: str | None = None) -> None:
        """Write what the log does not have yet of a history that was changed in another way.

        Args:
            history: The history now.
            state: How the turn stands, where no answer says it: `cancelled` or `failed` between two requests.
        """
        self._end_partial()
        if self._logger is None:
            return
        common = 0
        for known, message in zip(self._logged, history, strict=False):
            if known is not message and known != message:  # dataclasses that are one are compared field by field too
                break
            common += 1
        if common < len(self._logged):
            self.popped(len(self._logged) - common)
        if common == len(self._logged):
            self._add(history[common:], "added")
        if state is not None:
            self._emit("history.add", {"reason": "added", "messages": [], "state": state})

    def end(self, status: str, *, error: BaseException | None = None) -> None:
        """Write session.end with the totals since the last one. The session may go on all the same."""
        self._end_partial("cancelled" if status == "cancelled" else "failed" if status == "error" else "interrupted")
        if self._logger is not None:
            why = None if error is None else describe(error)
            self._has_ended = self._logger.end(status, error=why) or self._has_ended

    def close(self) -> None:
        """Let go of the file. The session has written its own end, or leaves a log as it is that others go on with."""
        if self._logger is not None:
            EventWriter.close(self._logger)

    def sibling(self, session_id: str | None = None) -> Recorder:
        """Make a recorder for another session in the same folder, written in the same way.

        Raises:
            ValueError: There is a log of that session already.
            InvalidSessionId: It is no id for a file.
        """
        return Recorder(None if self._logger is None else check_new(self._logger.sibling(session_id)))

    def parent(self) -> dict[str, Json] | None:
        """Return what a fork made now says of its parent; None without a log."""
        if self._logger is None:
            return None
        return {"session": self._logger.session_id, "path": self._logger.path, "seq": self.last_seq}

    def _emit(self, type_: str, data: Mapping[str, Json]) -> bool:
        return self._logger is not None and self._logger.emit(type_, dict(data))

    def _add(self, messages: Sequence[Message], reason: str, *, is_earlier: bool = False, **more: Json) -> None:
        """Write messages; the next request need not repeat those with `is_earlier`."""
        for chunk in pieces_of(messages, LONG):
            spelled = [message_to_dict(message) for message in chunk]
            if not self._emit("history.add", {"reason": reason, **more, "messages": spelled}):
                return
            if is_earlier:
                del self._logged[self._earlier :]
                self._earlier, self._starts_over = self._earlier + len(chunk), False
            self._logged.extend(chunk)
            more = {}

    def _log_ahead(self, history: Sequence[Message]) -> int:
        """Write what its request shall not hold of a history: inherited messages, and what is too long for one event.

        Returns how many messages the request need not repeat.
        """
        earlier = self._earlier if self._logged[: self._earlier] == list(history[: self._earlier]) else 0
        own = earlier
        while own < len(history) - 1 and id(history[own]) in self._inherited:
            own += 1
        # readers count each prompt of an incremental request as a new turn: inherited ones go into a history.add
        if own == earlier and sum(map(size_of, history[own:])) <= LONG:
            return earlier
        if not earlier and not self._starts_over:
            if not self._emit("history.clear", {}):
                return 0
            self._start_over([])
        self._add(history[earlier:own], "fork", is_earlier=True)
        self._add(history[self._earlier : -1], "long", is_earlier=True)
        return self._earlier

    def _start_over(self, logged: list[Message]) -> None:
        """The log gives this history now, and the next request holds all of it."""
        self._logged, self._earlier, self._starts_over = logged, 0, True

    def _end_partial(self, why: str = "interrupted") -> None:
        """Readers take the pieces of an answer that nothing finishes for an answer that is not whole."""
        if self._pieces:
            self._logged.append(Message.assistant("".join(self._pieces), partial=why))
            self._pieces = []


def check_new(logger: SessionLogger) -> SessionLogger:
    """Return the logger of a new log.

    Raises:
        ValueError: There is a log already.
    """
    if not logger.is_new():
        raise ValueError(f"{logger.path}: there is a log of session {logger.session_id!r} already")
    return logger


def _write_whole(fields: dict[str, Json], message: Message, key: str) -> None:
    """Write a message that the plain fields do not give whole; `key` is the one of its text."""
    fields["message"] = message_to_dict(message)
    if size_of(message) > LONG:
        fields[key] = cap_text(message.text)


def _given(fields: Mapping[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in fields.items() if value is not None}
