"""Lay out snapshots of a context window as Rich tables: three columns of 20, 24 and 40 cells.

Content of a log or an agent is passed as escaped `Text`, so that a tool called `[red]` is a name and no markup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from sessionlog.context.snapshots.full_snapshot import FullContextSnapshot
from sessionlog.context.snapshots.snapshot import ContextSnapshot
from sessionlog.context.usage import Counts, SessionUsage
from sessionlog.render.escape import one_line

_WIDTHS = (20, 24, 40)
_NAMES = 200
_FIRST_WORDS = 40


def make_context_table(snapshot: ContextSnapshot, *, show_context: bool = True) -> Table:
    """Return the sections CONTEXT, TURN and SESSION."""
    table = _table()
    if show_context:
        _add_context(table, snapshot)
        table.add_section()
    _add_turn(table, snapshot)
    table.add_section()
    _add_session(table, snapshot.session_usage)
    return table


def make_full_context_table(snapshot: FullContextSnapshot) -> Table:
    """Return the sections MODEL, CONTEXT and MESSAGES; a message that no longer fits is marked."""
    table = _table()
    _title(table, "MODEL", "bold cyan", "Window")
    _row(table, "  Model", snapshot.context_window or "?", one_line(snapshot.model_name or "unknown", _FIRST_WORDS))
    table.add_section()
    _title(table, "CONTEXT", "bold cyan", "Tokens", _measure(estimated=snapshot.estimated))
    _row(table, "  System Prompts", snapshot.system_prompt_tokens)
    _row(table, "  Tool Definitions", snapshot.tool_tokens, _names(tool.name for tool in snapshot.tools))
    if snapshot.memory_tokens:
        _row(table, "  Memory", snapshot.memory_tokens)
    _row(table, "  Messages", snapshot.current_tokens)
    if snapshot.history_tokens:
        _row(table, "  No Longer In", snapshot.history_tokens)
    _total(table, snapshot.total_tokens, snapshot.context_window, is_known=snapshot.is_window_known)
    table.add_section()
    _title(table, "MESSAGES", "bold yellow", "Tokens")
    for message in snapshot.messages:
        mark = "  " if message.in_context else "✘ "
        words = one_line(f"{message.tool_name or ''} {message.content}", _FIRST_WORDS)
        _row(table, mark + one_line(message.role, 18), message.estimated_tokens, words)
    return table


def window_size(tokens: int) -> str:
    """Format a window of tokens: `8K`, `128K`, `1M`, `1.5M`; `?` where it is unknown."""
    if tokens <= 0:
        return "?"
    if tokens < 1000:
        return str(tokens)
    if tokens < 1_000_000:
        return f"{tokens // 1000}K"
    return f"{tokens // 100_000 / 10:g}M"


def _table() -> Table:
    table = Table(show_header=True, box=box.ROUNDED, padding=(0, 1))
    table.add_column("", style="dim", width=_WIDTHS[0])
    table.add_column("#", justify="right", width=_WIDTHS[1])
    # A heading of blanks and no fixed width: on a narrow terminal this column shrinks, and the numbers stay whole.
    blank = Text(" " * _WIDTHS[2], no_wrap=True, overflow="crop")
    table.add_column(blank, max_width=_WIDTHS[2])
    return table


def _add_context(table: Table, snapshot: ContextSnapshot) -> None:
    _title(table, "CONTEXT", "bold cyan", "Tokens", _measure(estimated=snapshot.estimated))
    _row(table, "  System Prompts", snapshot.system_prompt_tokens)
    _row(table, "  Tool Definitions", snapshot.tool_tokens)
    _row(table, "  History", snapshot.get_history_total())
    _row(table, "  User", snapshot.current_user_tokens)
    if snapshot.current_assistant_tokens:
        _row(table, "  Assistant", snapshot.current_assistant_tokens)
    if traffic := snapshot.current_tool_call_tokens + snapshot.current_tool_return_tokens:
        _row(table, "  Tool Usage", traffic)
    if snapshot.model_input_tokens:
        missing = snapshot.not_in_messages or 0
        if missing:
            _row(table, "  Not In Messages", missing, "what the provider counted more")
        else:
            _row(table, "  Parts", snapshot.total_tokens, "estimated; the total is the provider's count")
    _total(
        table, snapshot.get_context_total(), snapshot.context_window, is_known=snapshot.is_window_known
    )  # fmt: skip


def _add_turn(table: Table, snapshot: ContextSnapshot) -> None:
    _title(table, "TURN", "bold yellow", "Count")
    turn = snapshot.turn_usage
    if turn is None:
        _row(table, "  No usage data")
        return
    _row(table, "  Tool Calls", turn.tool_calls, _names(turn.tool_names))
    _row(table, "  Steps", turn.requests)
    _row(table, "  Duration", f"{turn.duration_seconds:.2f}s")
    _row(table, "", "Tokens", dim=True)
    steps = snapshot.turn_steps
    for number, step in enumerate(steps, start=1):
        took = f" ({step.duration_ms / 1000:.2f} s)" if step.duration_ms is not None else ""
        tokens = f"{step.input_tokens} in / {step.output_tokens} out"
        name = f"Step {number}{took}"
        indent = 4 if len(name) + 4 <= _WIDTHS[0] else 2
        _row(table, " " * indent + name, tokens, _names(step.tool_names))
    _add_tokens(table, turn, with_sums=len(steps) != 1)


def _add_session(table: Table, session: SessionUsage | None) -> None:
    _title(table, "SESSION", "bold green", "Count")
    if session is None:
        _row(table, "  No session data")
        return
    _row(table, "  Turns", session.turns)
    _row(table, "  Tool Calls", session.tool_calls)
    _row(table, "  Steps", session.requests)
    _row(table, "", "Tokens", dim=True)
    _add_tokens(table, session)


def _add_tokens(table: Table, used: Counts, *, with_sums: bool = True) -> None:
    if with_sums:
        _row(table, "  Total Input", used.input_tokens)
        _row(table, "  Total Output", used.output_tokens)
    read, written = used.cache_read_tokens, used.cache_write_tokens
    if read or written:
        _row(table, "  Cached Input", read, f"of the input; {written} written" if written else "of the input")


def _total(table: Table, tokens: int, window: int, *, is_known: bool) -> None:
    percent = tokens / window * 100 if window else 0.0
    note = f"{percent:.1f}% of {window_size(window)}{'' if is_known else ' (assumed)'}"
    table.add_row(Text("  → Total", "bold"), Text(str(tokens), "bold"), Text(note, "dim"))


def _title(table: Table, title: str, style: str, unit: str, note: str = "") -> None:
    table.add_row(Text(f"═══ {title} ═══", style), Text(unit, "dim"), Text(note, "dim"))


def _row(table: Table, name: str, value: object = "", note: str = "", *, dim: bool = False) -> None:
    table.add_row(Text(name), Text(str(value), "dim" if dim else ""), Text(note, "dim"))


def _measure(*, estimated: bool) -> str:
    return "(estimated)" if estimated else "(counted)"


def _names(names: Iterable[str]) -> str:
    """Return each name once, in the order of first calls, with its number of calls."""
    counted = Counter(names)
    listed: Sequence[str] = [one_line(name, _NAMES) + (f" ×{n}" if n > 1 else "") for name, n in counted.items()]
    return ", ".join(listed)
