"""The output for a person at a terminal: the speaker, the streamed answer, a line per tool call, tokens and cost.

A tool's line is written when it is called, and rewritten with the outcome when it returns, if nothing else was written
in between and the terminal supports carriage returns.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence

from sessionlog.cli.repl.outputs import RESUME_FACT, Rows, write
from sessionlog.conversation.turns.pieces import Response, ToolReturned
from sessionlog.messages.message import Message, ToolRequest
from sessionlog.render import chat
from sessionlog.render.console import make_console
from sessionlog.render.escape import terminal
from sessionlog.render.flow import Flow
from sessionlog.render.replay.lines import Line, View
from sessionlog.render.replay.paint import Paint
from sessionlog.render.times import home_path

HINT = "/help lists the commands · Ctrl-C stops an answer · Ctrl-D leaves"


class TerminalOutput:
    """Shows a chat on the terminal that stdout is.

    Attributes:
        is_coloured: The terminal shows colours, and the user has not turned them off.
    """

    is_interactive = True
    wants_json = False

    def __init__(self, home: str = "") -> None:
        console = make_console()
        system = None if console.no_color or console.is_dumb_terminal else console.color_system
        self.is_coloured = system is not None
        self._goes_back = not console.is_dumb_terminal
        self._paint = Paint(color_system=system, encoding=getattr(sys.stdout, "encoding", None) or "utf-8")
        self._home, self._hint = home, HINT
        self._open_call: str | None = None  # id of the call whose line is on the cursor's row
        self._flow = Flow(self._width)
        self._is_empty = True

    def opened(self, session_id: str, _path: str, agent: str, model: str) -> None:
        """Show the session's head."""
        self._lines(chat.opening(self._view, session_id, agent, model))
        self._lines(chat.remark(self._view, self._hint, sign=""))
        self._hint = ""  # shown once, not for a fork
        write(sys.stdout, "\n")

    def last_turn(self, messages: Sequence[Message], speaker: str) -> None:
        """Show the last turn as it was shown before."""
        view, last = self._view, ""
        returned = {message.tool_call_id for message in messages if message.role == "tool"}
        for message in messages:
            if message.role == "user":
                self._lines(chat.earlier_prompt(view, message.text))
                write(sys.stdout, "\n")
            elif message.role == "assistant":
                if last not in {"assistant", "tool"}:
                    self._lines([chat.speaker(view, speaker)])
                self._lines(chat.earlier_answer(view, message.text))
                for request in message.tool_calls:
                    figures = [] if request.id in returned else [chat.NO_RESULT]
                    self._lines(chat.tool_line(view, request.name, request.arguments, figures))
            if message.partial:
                self._lines(chat.remark(view, message.partial, "unfinished", "◌"))
            last = message.role
        if messages:
            write(sys.stdout, "\n")

    def turn_started(self, speaker: str) -> None:
        """Show who will answer, as a sign that the request was sent."""
        self._flow = Flow(self._width)
        self._is_empty = True
        write(sys.stdout, "\n")
        self._lines([chat.speaker(self._view, speaker)])

    def text(self, text: str) -> None:
        """Write the next piece of the answer, wrapped."""
        self._end_tool_row()
        self._is_empty = self._is_empty and not text.strip()
        write(sys.stdout, self._flow.feed(text))

    def tool_called(self, request: ToolRequest) -> None:
        """Write the tool's line."""
        self._end()
        [line] = chat.tool_line(self._view, request.name, request.arguments)
        write(sys.stdout, self._paint(line) + ("" if self._goes_back else "\n"))
        self._open_call = request.id if self._goes_back else None
        self._is_empty = False

    def tool_returned(self, piece: ToolReturned) -> None:
        """Rewrite the tool's line with its outcome, or write the outcome below."""
        view, request = self._view, piece.request
        figures = chat.outcome(view, piece.error, piece.duration_ms, piece.message.text)
        if self._open_call == request.id:
            write(sys.stdout, "\r")
            self._open_call = None
            self._lines(chat.tool_line(view, request.name, request.arguments, figures))
            return
        self._end()
        self._lines(chat.tool_below(view, figures, request.name))

    def done(self, response: Response) -> None:
        """Show tokens, cost and time, and what truncation dropped."""
        self._end()
        view, cut = self._view, response.truncation
        if self._is_empty:
            self._lines(chat.remark(view, "(no text)", sign=""))
        if response.status != "success":
            self._lines(chat.remark(view, f"{response.status}; the partial answer is kept", "unfinished", "◌"))
        if cut:
            text = f"{int(cut)} older messages left out: ~{cut.tokens_before:,} → ~{cut.tokens_after:,} tokens"
            self._lines(chat.remark(view, text))
        if cut is not None and cut.is_over_budget:
            over = "the history is over its budget: nothing more can be left out"
            self._lines(chat.remark(view, over, "unfinished", "!"))
        figures = chat.turn_figures(
            view, duration_ms=response.duration_ms, usage=response.usage, cost_usd=response.cost_usd,
            partial=response.usage_is_partial,
        )  # fmt: skip
        self._lines(figures)
        write(sys.stdout, "\n")

    def stopped(self) -> None:
        """Show that the turn was stopped."""
        self._end()
        write(sys.stdout, "\r" if self._goes_back else "")  # over the terminal's own ^C
        self._lines(chat.remark(self._view, "stopped; the partial answer is kept", "unfinished", "◌"))
        write(sys.stdout, "\n")

    def failed(self, text: str) -> None:
        """Show the error."""
        self._end()
        self._lines(chat.turn_error(self._view, text))
        write(sys.stdout, "\n")

    def note(self, text: str) -> None:
        """Show the message and an empty line."""
        self._end()
        self._lines(chat.remark(self._view, text))
        write(sys.stdout, "\n")

    def facts(self, _title: str, rows: Rows) -> None:
        """Show two columns, and below them the command to resume, unwrapped, so that it can be copied."""
        shown = [(name, "type" if name == RESUME_FACT else home_path(text, self._home)) for name, text in rows]
        self._lines(chat.facts(self._view, shown))
        write(sys.stdout, "".join(f"{terminal(text)}\n" for name, text in rows if name == RESUME_FACT))
        write(sys.stdout, "\n")

    def report(self, _name: str, command: Callable[[], None]) -> None:
        """Run the command, which prints to the terminal."""
        write(sys.stdout, "\n")
        command()
        write(sys.stdout, "\n")

    @property
    def _width(self) -> int | None:
        return self._view.width if self._goes_back else None

    @property
    def _view(self) -> View:
        """The view for the terminal's present width."""
        return View(width=make_console().width, exact=False)

    def _lines(self, lines: Iterable[Line]) -> None:
        write(sys.stdout, "".join(f"{self._paint(line)}\n" for line in lines))

    def _end(self) -> None:
        self._end_tool_row()
        write(sys.stdout, self._flow.end())

    def _end_tool_row(self) -> None:
        """End the row of a tool that has not returned, as other text follows."""
        if self._open_call is not None:
            self._open_call = None
            write(sys.stdout, "\n")
