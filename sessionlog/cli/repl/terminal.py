"""The face for a person at a terminal: who answers, the answer as it comes, tools on a line each, what it took.

A tool's line is begun when it is called and finished on the same row when it has returned, if nothing else was written
meanwhile and the terminal can go back to a row's begin.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence

from sessionlog.cli.repl.faces import TYPED, Rows, write
from sessionlog.conversation.turns.pieces import Response, ToolReturned
from sessionlog.messages.message import Message, ToolRequest
from sessionlog.render import chat
from sessionlog.render.console import make_console
from sessionlog.render.escape import terminal
from sessionlog.render.flow import Flow
from sessionlog.render.replay.lines import Line, View
from sessionlog.render.replay.paint import Paint
from sessionlog.render.times import home_path

HINT = "/help says what there is · Ctrl-C stops an answer · Ctrl-D leaves"


class TerminalFace:
    """Tells a chat on the terminal that stdout is.

    Attributes:
        is_coloured: The terminal shows colours, and the person wants them.
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
        self._begun: str | None = None  # the call whose line stands on the row at hand
        self._flow = Flow(self._width)
        self._is_empty = True

    def opened(self, session_id: str, _path: str, agent: str, model: str) -> None:
        """Draw the head."""
        self._lines(chat.opening(self._view, session_id, agent, model))
        self._lines(chat.mark(self._view, self._hint, sign=""))
        self._hint = ""  # a fork has a head, too
        write(sys.stdout, "\n")

    def before(self, messages: Sequence[Message], speaker: str) -> None:
        """Show the last turn, as it was."""
        view, last = self._view, ""
        returned = {message.tool_call_id for message in messages if message.role == "tool"}
        for message in messages:
            if message.role == "user":
                self._lines(chat.asked(view, message.text))
                write(sys.stdout, "\n")
            elif message.role == "assistant":
                if last not in {"assistant", "tool"}:
                    self._lines([chat.speaker(view, speaker)])
                self._lines(chat.answered(view, message.text))
                for request in message.tool_calls:
                    figures = [] if request.id in returned else [chat.NO_RESULT]
                    self._lines(chat.tool_line(view, request.name, request.arguments, figures))
            if message.partial:
                self._lines(chat.mark(view, message.partial, "unfinished", "◌"))
            last = message.role
        if messages:
            write(sys.stdout, "\n")

    def asking(self, speaker: str) -> None:
        """Say who answers, so that it can be seen that somebody was asked."""
        self._flow = Flow(self._width)
        self._is_empty = True
        write(sys.stdout, "\n")
        self._lines([chat.speaker(self._view, speaker)])

    def text(self, text: str) -> None:
        """Let it flow."""
        self._leave_tool()
        self._is_empty = self._is_empty and not text.strip()
        write(sys.stdout, self._flow.feed(text))

    def called(self, request: ToolRequest) -> None:
        """Begin the tool's line."""
        self._end()
        [line] = chat.tool_line(self._view, request.name, request.arguments)
        write(sys.stdout, self._paint(line) + ("" if self._goes_back else "\n"))
        self._begun = request.id if self._goes_back else None
        self._is_empty = False

    def returned(self, piece: ToolReturned) -> None:
        """Finish the tool's line, or say below what became of it."""
        view, request = self._view, piece.request
        figures = chat.outcome(view, piece.error, piece.duration_ms, piece.message.text)
        if self._begun == request.id:
            write(sys.stdout, "\r")
            self._begun = None
            self._lines(chat.tool_line(view, request.name, request.arguments, figures))
            return
        self._end()
        self._lines(chat.tool_below(view, figures, request.name))

    def done(self, response: Response) -> None:
        """Say what it took, and what was cut."""
        self._end()
        view, cut = self._view, response.truncation
        if self._is_empty:
            self._lines(chat.mark(view, "(no text)", sign=""))
        if response.status != "success":
            self._lines(chat.mark(view, f"{response.status}; what was said is kept", "unfinished", "◌"))
        if cut:
            said = f"{int(cut)} older messages left out: ~{cut.tokens_before:,} → ~{cut.tokens_after:,} tokens"
            self._lines(chat.mark(view, said))
        if cut is not None and cut.is_over_budget:
            over = "the history is over its budget: nothing more can be left out"
            self._lines(chat.mark(view, over, "unfinished", "!"))
        figures = chat.turn_figures(
            view, duration_ms=response.duration_ms, usage=response.usage, cost_usd=response.cost_usd,
            partial=response.usage_is_partial,
        )  # fmt: skip
        self._lines(figures)
        write(sys.stdout, "\n")

    def stopped(self) -> None:
        """Say that what was said is kept."""
        self._end()
        write(sys.stdout, "\r" if self._goes_back else "")  # over the terminal's own ^C
        self._lines(chat.mark(self._view, "stopped; what was said is kept", "unfinished", "◌"))
        write(sys.stdout, "\n")

    def failed(self, text: str) -> None:
        """Say why."""
        self._end()
        self._lines(chat.said_wrong(self._view, text))
        write(sys.stdout, "\n")

    def say(self, text: str) -> None:
        """Say it, and what comes next has room."""
        self._end()
        self._lines(chat.mark(self._view, text))
        write(sys.stdout, "\n")

    def facts(self, _title: str, rows: Rows) -> None:
        """Two columns; what is to be typed stands below, as it is and in one piece, so that it can be copied."""
        shown = [(name, "type" if name == TYPED else home_path(text, self._home)) for name, text in rows]
        self._lines(chat.facts(self._view, shown))
        write(sys.stdout, "".join(f"{terminal(text)}\n" for name, text in rows if name == TYPED))
        write(sys.stdout, "\n")

    def report(self, _name: str, command: Callable[[], None]) -> None:
        """It prints to this terminal."""
        write(sys.stdout, "\n")
        command()
        write(sys.stdout, "\n")

    @property
    def _width(self) -> int | None:
        return self._view.width if self._goes_back else None

    @property
    def _view(self) -> View:
        """As wide as the terminal is now."""
        return View(width=make_console().width, exact=False)

    def _lines(self, lines: Iterable[Line]) -> None:
        write(sys.stdout, "".join(f"{self._paint(line)}\n" for line in lines))

    def _end(self) -> None:
        self._leave_tool()
        write(sys.stdout, self._flow.end())

    def _leave_tool(self) -> None:
        """Something else is told before the tool has returned."""
        if self._begun is not None:
            self._begun = None
            write(sys.stdout, "\n")
