"""Recorder: writes a session into its log, so that the session can be read back from the log alone.

Messages are counted by position: after an `llm.request`, the history is the first `earlier_messages` messages of the
previous one (0 if absent), then the request's `messages`. A request holds everything new since the last one, with
answers and tool results; changes between requests have their own events. Where the history does not continue the
logged one (after a truncation, `clear` or `undo`), the next request holds all of it.

Invariant: the recorder counts only what is in the file. An event that could not be written changes nothing here, so the
next request includes its messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sessionlog.conversation.history.truncation import Truncation
from sessionlog.conversation.history.weight import cap_message, cap_text, size_of, size_of_json
from sessionlog.conversation.log.event_codec import (
    answer_fields,
    chunk_messages,
    json_options,
    read_answer,
    read_tool_result,
    result_fields,
    tool_to_json,
    truncation_fields,
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
"""Characters of messages in one event; more take several. One takes up to 6 bytes, and an event may have 32 MiB."""


class Recorder:
    """Writes one session's events. Every method does nothing without a logger.

    Failures to write are raised only if the logger has `on_error="raise"`.
    """

    def __init__(self, logger: SessionLogger | None) -> None:
        self._logger = logger
        self._logged: list[Message] = []  # the history that reading the log would give
        self._earlier = 0  # the number of these that the next request need not repeat
        self._starts_over = True  # the log has an event that requires a whole next request
        self._pieces: list[str] = []  # of the unfinished answer
        self._logged_system: str | None = None
        self._system: str | None = None
        self._inherited: dict[int, Message] = {}  # from a parent: no turns of this session
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
        """Write session.start and the history that the session starts with.

        Args:
            system: The system text.
            parent: The fork point `{"session", "path", "seq"}` of a fork.
            inherited: The history that the session starts with.
            usage: The usage of that history, if it counts as this session's.
        """
        self._system = system
        if self._logger is None:
            return
        if self._logger.owner is None:
            self._logger.owner = self._key
        if not self._is_sole_writer():
            return  # another session writes this log: `check_sole_writer` raises
        start = _given({"system_prompt": system or None, "parent": parent})
        if self._logger.is_new() and self._emit("session.start", start):
            self._logged_system = system
        if inherited:
            reason = "fork" if parent else "restored"
            more = _given({"parent": parent, "usage": usage.to_dict() if usage else None})
            self._inherited = {id(message): message for message in inherited} if parent else {}
            self._add(inherited, reason, is_earlier=True, **more)

    def continue_log(self, session: LoggedSession, *, system: str | None = None) -> None:
        """Continue the log of a session; this writes nothing."""
        self._logged, self._earlier, self._starts_over = list(session.logged), session.earlier, False
        self._inherited = {id(message): message for message in session.inherited}
        self._logged_system, self._last_seq = session.system, session.last_seq
        self._system = session.system if system is None else system
        if self._logger is not None:
            self._others, self._logger.owner = session.size, self._key
            self._logger.begin_run(copy(session.run))

    def check_sole_writer(self) -> None:
        """Check that no other writer has appended to the log: two writers would corrupt the history.

        It costs one stat. A log that was deleted or replaced meanwhile is written anew.

        Raises:
            StaleSession: Another writer has appended to the log since this recorder wrote or read it, or another
                session uses the same logger.
        """
        if self._is_sole_writer():
            return
        raise StaleSession(
            f"{self.path}: another writer has appended to the log of session {self.session_id!r} meanwhile; "
            f"Session.resume({self.path!r}, …) continues with their events, fork() continues from this history "
            "in a new log"
        )

    def _is_sole_writer(self) -> bool:
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
        """Write a request: the new messages of the history, the tools, and the options that are JSON."""
        if self._logger is None:
            return
        if self._has_ended:
            self._logger.begin_run()
            self._has_ended = False
        self._pieces = []
        earlier = self._write_ahead(history)
        fields = {
            "model": model,
            "provider": provider,
            **json_options(options or {}),
            "system": (self._system or "") if self._system != self._logged_system else None,
            "tools": [tool_to_json(tool) for tool in tools] or None,
            "attempt_index": attempt if attempt > 1 else None,
            "messages": [message_to_dict(message) for message in history[earlier:]],
            "earlier_messages": earlier or None,  # last, because scans look for it at the end of the line
        }
        if self._emit("llm.request", _given(fields)):
            self._logged = list(history)
            self._earlier, self._starts_over = len(self._logged), False
            self._logged_system = self._system

    def delta(self, text: str) -> None:
        """Write a piece of the answer's text; the caller shows it afterwards."""
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
        """Write the answer, whole or `partial`; or the error where there was none.

        Without a message, the deltas written so far are the answer, if there are any. A `reply` adds usage, model and
        cost of a whole answer.
        """
        given = reply or Reply(message=Message.assistant())
        if message is not None and partial is not None:
            message = replace(message, partial=partial)
        message = None if message is None else cap_message(message)
        known = {
            **({"partial": partial} if message is None else answer_fields(message)),
            "usage": None if given.usage is None else {**given.usage.to_dict(), **given.billed},
            "cost_usd": given.cost_usd,
            "latency_ms": latency_ms,
            "model": given.model,
            "attempt": {"provider_system": given.provider} if given.provider else None,
            "attempt_index": attempt if attempt > 1 else None,
            "finish_reason": given.finish_reason,
            "error": describe(error) if isinstance(error, BaseException) else error,
        }
        fields, streamed = _given(known), "".join(self._pieces)
        if message is not None and read_answer(fields, streamed) != message:
            _write_whole(fields, message, "content")
        if self._emit("llm.response", fields):
            answer = message or read_answer(fields, streamed)
            self._logged += [answer] if answer else []
            self._pieces = []

    def tool(self, returned: ToolReturned) -> None:
        """Write a tool's run and its result."""
        request, message = returned.request, cap_message(returned.message)
        duration = None if returned.duration_ms is None else round(returned.duration_ms, 3)
        fields = _given({**result_fields(request, message), "duration_ms": duration, "error": returned.error})
        if size_of_json(request.arguments) > LONG:
            fields["input"] = cap_text(str(request.arguments))  # the answer with this call has them all
        if read_tool_result(fields, request.id, request.name) != message:
            _write_whole(fields, message, "output")
        if self._emit("tool.call", fields):
            self._logged.append(message)

    def popped(self, count: int) -> None:
        """Write that the last `count` messages were removed."""
        self._end_partial()
        if count > 0 and self._emit("history.pop", {"count": count}):
            self._start_over(self._logged[:-count])

    def cleared(self) -> None:
        """Write that the history was cleared."""
        self._end_partial()
        if self._emit("history.clear", {}):
            self._start_over([])

    def truncated(self, before: Sequence[Message], after: Sequence[Message], truncation: Truncation) -> None:
        """Write which messages a truncation dropped and added."""
        self._end_partial()
        if not truncation.is_over_budget and list(before) == list(after):
            return
        self.sync(before)
        fields = truncation_fields(before, after, truncation)
        if self._emit("compaction.end", _given(fields)) and not fields["no_compaction"]:
            self._start_over(list(after))

    def sync(self, history: Sequence[Message], *, state: str | None = None) -> None:
        """Write the difference between the logged and the current history.

        Args:
            history: The current history.
            state: The turn's state, if no answer states it: `cancelled` or `failed` between two requests.
        """
        self._end_partial()
        if self._logger is None:
            return
        common = 0
        for known, message in zip(self._logged, history, strict=False):
            if known is not message and known != message:  # `==` alone would compare even identical objects by field
                break
            common += 1
        if common < len(self._logged):
            self.popped(len(self._logged) - common)
        if common == len(self._logged):
            self._add(history[common:], "added")
        if state is not None:
            self._emit("history.add", {"reason": "added", "messages": [], "state": state})

    def end(self, status: str, *, error: BaseException | None = None) -> None:
        """Write session.end with the totals since the last one. The session may continue after it."""
        self._end_partial("cancelled" if status == "cancelled" else "failed" if status == "error" else "interrupted")
        if self._logger is not None:
            why = None if error is None else describe(error)
            self._has_ended = self._logger.end(status, error=why) or self._has_ended

    def close(self) -> None:
        """Close the file without a session.end: the session has written it, or another writer continues the log."""
        if self._logger is not None:
            EventWriter.close(self._logger)

    def sibling(self, session_id: str | None = None) -> Recorder:
        """Return a recorder for another session in the same folder, with the same options.

        Raises:
            ValueError: That session has a log already.
            InvalidSessionId: The id cannot be a file name.
        """
        return Recorder(None if self._logger is None else check_new(self._logger.sibling(session_id)))

    def as_parent(self) -> dict[str, Json] | None:
        """Return the `parent` field for the log of a fork made now; None without a log."""
        if self._logger is None:
            return None
        return {"session": self._logger.session_id, "path": self._logger.path, "seq": self.last_seq}

    def _emit(self, type_: str, data: Mapping[str, Json]) -> bool:
        return self._logger is not None and self._logger.emit(type_, dict(data))

    def _add(self, messages: Sequence[Message], reason: str, *, is_earlier: bool = False, **more: Json) -> None:
        """Write messages; with `is_earlier`, the next request need not repeat them."""
        for chunk in chunk_messages(messages, LONG):
            written = [message_to_dict(message) for message in chunk]
            if not self._emit("history.add", {"reason": reason, **more, "messages": written}):
                return
            if is_earlier:
                del self._logged[self._earlier :]
                self._earlier, self._starts_over = self._earlier + len(chunk), False
            self._logged.extend(chunk)
            more = {}

    def _write_ahead(self, history: Sequence[Message]) -> int:
        """Write the messages that do not go into the next request: inherited ones, and those too long for one event.

        Returns the number of messages that the request need not repeat.
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
        """Note that the log now gives `logged`, and that the next request has to hold the whole history."""
        self._logged, self._earlier, self._starts_over = logged, 0, True

    def _end_partial(self, why: str = "interrupted") -> None:
        """Add the deltas of an unfinished answer to the logged history, as readers do."""
        if self._pieces:
            self._logged.append(Message.assistant("".join(self._pieces), partial=why))
            self._pieces = []


def check_new(logger: SessionLogger) -> SessionLogger:
    """Return the logger if its log does not exist yet.

    Raises:
        ValueError: The log exists.
    """
    if not logger.is_new():
        raise ValueError(f"{logger.path}: there is a log of session {logger.session_id!r} already")
    return logger


def _write_whole(fields: dict[str, Json], message: Message, key: str) -> None:
    """Add the whole message to fields that do not hold all of it; a long text in `key` is shortened."""
    fields["message"] = message_to_dict(message)
    if size_of(message) > LONG:
        fields[key] = cap_text(message.text)


def _given(fields: Mapping[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in fields.items() if value is not None}
