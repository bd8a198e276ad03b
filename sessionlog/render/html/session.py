"""The page of a session: its facts, its prompts as navigation, and the conversation turn by turn.

The facts and the prompts stand above, but are known at the end of the log: what is below is kept packed until then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from sessionlog.events.payloads import SessionStart
from sessionlog.render.escape import one_line
from sessionlog.render.html.conversation import CUT, CUT_LATER, CUT_OUTLINE, element_of, figures_of, lines_of
from sessionlog.render.html.page import Html, join, render_page, tag
from sessionlog.render.html.turns import Placed, Turn, place
from sessionlog.render.packed import Packed
from sessionlog.render.replay.blocks import (
    Block,
    MessageBlock,
    ResponseBlock,
    RewriteBlock,
    SessionEndBlock,
    SessionStartBlock,
    ToolCallBlock,
)
from sessionlog.render.replay.figures import counted, moment, money, tokens
from sessionlog.render.replay.layout_session import session_end, session_head, session_sums
from sessionlog.render.replay.lines import Span, View
from sessionlog.render.times import home_path

_TITLE = 80
_PROMPT = 160
"""Characters of a prompt in the list of prompts."""

_PROMPTS = 40
"""Prompts up to which their list is unfolded at first."""

_LONG = 2_500_000
"""Characters of a page from which long texts are cut shorter."""

_TOO_LONG = 5_800_000
"""Characters of a page from which only an outline is shown: browsers lay out more than that slowly."""

_OUTLINED = 50
"""Answers of a turn of which an outline has the last."""


class SessionPage(Struct, frozen=True, kw_only=True):
    """What a page shows of a session besides its events.

    Attributes:
        session: The session's id.
        agent: The agent's name.
        scrubbed: Whether secrets were taken out.
    """

    session: str
    agent: str
    scrubbed: bool = False


def render_session(blocks: Iterable[Block], view: View, about: SessionPage) -> Iterator[str]:
    """Yield the page of a session piece by piece; the first piece comes when all blocks are read.

    Args:
        blocks: As `fold_replay` makes them.
        view: Settings of the layout; its width is None, its limits are `conversation.CUT`, and `CUT_LATER` once the
            page is long, or none.
        about: The session's facts.
    """
    packed = Packed()
    turns: list[Turn] = []
    ends, elements = _Ends(), _Elements(view)
    for turn, group in groupby(ends.watch(place(blocks)), key=lambda placed: placed.turn):
        turns.append(turn)
        for piece in _turn(turn, group, elements):
            packed.add(piece)
    title = one_line(next((turn.prompt for turn in turns if turn.prompt), ""), _TITLE) or about.session or "Session"
    body = _body(title, turns, ends, packed, view, about, elements.outline_from)
    yield from render_page(title, body, kind="session")


class _Elements:
    """Makes the elements of blocks: with shorter texts once the page is long.

    Attributes:
        view: Settings of the layout of the next one.
        outline_from: The turn from which on there is only an outline; None where all is shown.
    """

    def __init__(self, view: View) -> None:
        self.view = view
        self.outline_from: Turn | None = None
        self._size = 0

    def is_outline(self, turn: Turn) -> bool:
        """Return whether only an outline is shown of what comes next, which belongs to this turn."""
        if self._size > _TOO_LONG and self.view.limits == CUT_LATER:
            self.outline_from = turn
            self.view = replace(self.view, limits=CUT_OUTLINE)
        return self.outline_from is not None

    def of(self, block: Block) -> Html:
        """Return the element of a block."""
        made = element_of(block, self.view)
        self._size += len(made)
        if self._size > _LONG and self.view.limits == CUT:
            self.view = replace(self.view, limits=CUT_LATER)
        return made


class _Ends:
    """Keeps the head and the end of a session for the page's head."""

    def __init__(self) -> None:
        self.start: SessionStartBlock | None = None
        self.end: SessionEndBlock | None = None
        self.model = ""  # of the first answer

    def watch(self, placed: Iterable[Placed]) -> Iterator[Placed]:
        """Yield all but the head."""
        for one in placed:
            if isinstance(one.block, SessionStartBlock):
                self.start = one.block
                continue
            if isinstance(one.block, SessionEndBlock):
                self.end = one.block
            elif not self.model and isinstance(one.block, ResponseBlock):
                self.model = one.block.served.model
            yield one


def _body(
    title: str,
    turns: list[Turn],
    ends: _Ends,
    packed: Packed,
    view: View,
    about: SessionPage,
    outline_from: Turn | None,
) -> Iterator[Html]:
    prompts = [turn for turn in turns if turn.number]
    yield tag("a", "To the conversation", href="#conversation", class_="skip")
    yield tag("header", tag("h1", title, dir="auto"), *_facts(ends, view, about), _of_outline(outline_from))
    if len(prompts) > 1:
        heading = tag("h2", "Prompts ", tag("small", f"{len(prompts):,}"), id="prompts")
        rows = tag("ol", *(_prompt_row(turn, view) for turn in prompts), class_="prompts")
        parts = (
            [heading, rows]
            if len(prompts) <= _PROMPTS
            else [tag("details", tag("summary", heading), rows, class_="started")]
        )
        yield tag("nav", *parts, aria_labelledby="prompts")
    yield _tools()
    yield Html('<main id="conversation">')
    yield from map(Html, packed.texts())
    yield Html("</main>")
    made = moment(view, int(view.now.timestamp()) * 10**9).text
    yield tag("footer", tag("p", f"sessionlog · made {made} {_zone(view)}", class_="dim"))


def _of_outline(turn: Turn | None) -> Html | None:
    """Return the sentence on what a very long page leaves out."""
    if turn is None:
        return None
    where = tag("a", f"turn {turn.number}", href=f"#turn-{turn.number}")
    return tag(
        "p",
        "A very long session: from ",
        where,
        " on, only prompts and last answers are shown (--full shows all).",
        class_="unsure",
    )


def _facts(ends: _Ends, view: View, about: SessionPage) -> Iterator[Html]:
    start = (ends.start.start if ends.start else None) or SessionStart()
    model = " / ".join(filter(None, (start.served_by, start.model or ends.model)))
    began = moment(view, ends.start.time_ns if ends.start else None).text
    facts = {
        "agent": about.agent,
        "model": one_line(model, _PROMPT),
        "project": one_line(home_path(start.work_dir or "", view.home), 2 * _PROMPT),
        "started": f"{began} {_zone(view)}" if began else "",
        "session": one_line(about.session, _PROMPT),
    }
    yield tag("dl", *(_fact(name, tag("bdi", text)) for name, text in facts.items() if text), class_="facts")
    if ends.end is not None:
        yield tag("p", figures_of(session_sums(view, ends.end)), class_="sums")
    if ends.start is not None:
        more = list(session_head(view, ends.start))[1:]
        if more:
            yield tag("details", tag("summary", "how it was started"), lines_of(more), class_="started")
    damaged = ends.end.totals["damaged piece"] if ends.end is not None else 0
    if damaged:
        yield tag(
            "p", f"{counted(view, damaged, 'damaged piece')} of the log could not be read, named below", class_="bad"
        )
    if about.scrubbed:
        yield tag("p", "Secrets were replaced by [redacted].", class_="dim")


def _fact(name: str, value: Html) -> Html:
    return tag("div", tag("dt", name), tag("dd", value))


def _zone(view: View) -> str:
    return view.now.astimezone(view.zone).tzname() or ""


def _tools() -> Html:
    """Return the search field and the buttons, which only a script can serve."""
    return tag(
        "div",
        tag("label", "Search ", tag("input", type="search", data_search=".step", aria_describedby="found")),
        tag("span", id="found", class_="dim", role="status"),
        tag("button", "unfold all", type="button", data_fold="open"),
        tag("button", "fold all", type="button", data_fold="shut"),
        class_="tools script-only", role="search",
    )  # fmt: skip


def _prompt_row(turn: Turn, view: View) -> Html:
    words = one_line(turn.prompt, _PROMPT) or "(no prompt)"
    return tag(
        "li", tag("a", tag("bdi", words), href=f"#turn-{turn.number}"),
        tag("span", moment(view, turn.time_ns).text, class_="dim"), figures_of(_turn_figures(turn, view)),
        value=turn.number,
    )  # fmt: skip


def _turn_figures(turn: Turn, view: View) -> Iterator[Span]:
    if turn.usage.total:
        yield Span(f"{counted(view, turn.usage.total, 'token')}")
    yield money(view, turn.cost)
    if turn.tools:
        yield Span(counted(view, turn.tools, "tool"))
    if turn.failed:
        yield Span(f"{turn.failed:,} failed", "failed")


def _turn(turn: Turn, group: Iterable[Placed], elements: _Elements) -> Iterator[str]:
    """Yield a turn as a section, its sub-agents' work folded."""
    number, view = turn.number, elements.view
    name = f"turn-{number}"
    yield f'<section class="turn" id="{name}" aria-labelledby="{name}-title">'
    heading = tag("a", f"Turn {number}" if number else "Before the first prompt", href=f"#{name}")
    yield tag("h2", heading, " ", tag("small", moment(view, turn.time_ns).text), id=f"{name}-title")
    outline = _Outline(elements)
    for agent, blocks in groupby((placed.block for placed in group), key=lambda block: block.agent):
        if agent and not elements.is_outline(turn):
            yield _sub_agent(agent, blocks, elements, turn)
            continue
        for block in blocks:
            if elements.is_outline(turn):
                yield from outline.add(block)
            else:
                yield _end(block, view) if isinstance(block, SessionEndBlock) else elements.of(block)
    yield from outline.end()
    figures = [*tokens(view, turn.usage), *_turn_figures(turn, view)] if turn.requests > 1 else []
    if figures:
        yield tag("p", "this turn: ", figures_of(figures), class_="sum dim")
    yield "</section>\n"


class _Outline:
    """Shows the prompts among blocks, and the last of every few answers; the others and calls are counted."""

    def __init__(self, elements: _Elements) -> None:
        self._elements = elements
        self._clear()

    def _clear(self) -> None:
        self._last: ResponseBlock | None = None
        self._answers = self._calls = 0

    def add(self, block: Block) -> Iterator[Html]:
        """Add the next block, and yield what is shown."""
        if isinstance(block, SessionEndBlock):
            yield from self.end()
            yield _end(block, self._elements.view)
        elif isinstance(block, ResponseBlock):
            self._answers += 1
            has_words = not block.agent and (block.text.strip() or block.error)
            self._last = block if has_words else self._last
            if self._answers >= _OUTLINED:
                yield from self.end()
        elif isinstance(block, ToolCallBlock):
            self._calls += 1
        elif not block.agent and not (isinstance(block, MessageBlock) and block.role != "user"):
            if isinstance(block, RewriteBlock) or block.type.startswith("compaction."):
                yield from self.end()  # these are about the answers before them
            yield self._elements.of(block)

    def end(self) -> Iterator[Html]:
        """Yield the last answer so far without its thoughts, and how many answers and calls before it are left out."""
        counts = ((self._answers - (self._last is not None), "answer"), (self._calls, "tool call"))
        left_out = " and ".join(counted(self._elements.view, count, what) for count, what in counts if count)
        if left_out:
            yield tag("p", f"… {left_out} (--full)", class_="dim cut")
        if self._last is not None:
            yield self._elements.of(replace(self._last, thought=""))
        self._clear()


def _sub_agent(agent: str, blocks: Iterable[Block], elements: _Elements, turn: Turn) -> Html:
    work, outline = Turn(), _Outline(elements)
    parts = list[Html]()
    for block in blocks:
        work.add(block)
        parts += outline.add(block) if elements.is_outline(turn) else (elements.of(block),)
    parts += outline.end()
    summary = join(
        tag("b", "sub-agent"),
        " ",
        tag("bdi", one_line(agent, _TITLE)),
        " ",
        figures_of(_turn_figures(work, elements.view)),
    )
    return tag("details", tag("summary", summary), *parts, class_="agent")


def _end(block: SessionEndBlock, view: View) -> Html:
    return tag("div", lines_of(session_end(view, block)), class_="step aside end")
