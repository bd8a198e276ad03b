"""Turns of a conversation: which blocks belong to a prompt, and the sums of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec.structs import replace

from sessionlog.events.tokens import TokenUsage
from sessionlog.render.replay.blocks import (
    Block,
    Cost,
    MessageBlock,
    RequestBlock,
    ResponseBlock,
    SessionEndBlock,
    SessionStartBlock,
    ToolCallBlock,
)


@dataclass(slots=True)
class Turn:
    """A prompt and everything until the next one; the work of its sub-agents counts.

    Attributes:
        number: Counts from 1; 0 for what is before the first prompt.
        prompt: The prompt's text, its first one if there are several; "" where the log has none.
        time_ns: When it began; None where it is not logged.
        usage: The tokens of its responses.
        nano: Its known cost in nano-dollars.
        estimated: Whether a part of the cost comes from the price table.
        priced: Responses whose cost is known.
        unpriced: Responses whose cost is unknown, but for failed ones without tokens.
        requests: Its requests.
        tools: Its tool calls.
        failed: Its failed requests and tool calls.
    """

    number: int = 0
    prompt: str = ""
    time_ns: int | None = None
    usage: TokenUsage = field(default_factory=TokenUsage)
    nano: int = 0
    estimated: bool = False
    priced: int = 0
    unpriced: int = 0
    requests: int = 0
    tools: int = 0
    failed: int = 0

    @property
    def cost(self) -> Cost | None:
        """What it cost; None where nothing is known."""
        if not self.priced:
            return None
        return Cost(nano=self.nano, estimated=self.estimated, partial=self.unpriced > 0, unchecked=True)

    def add(self, block: Block) -> None:
        """Count a block."""
        if isinstance(block, ToolCallBlock):
            self.tools += 1
            self.failed += bool(block.error)
        if not isinstance(block, ResponseBlock):
            return
        self.requests += 1
        self.failed += bool(block.error)
        self.usage += block.served.usage or TokenUsage()
        cost = block.served.cost
        if cost is not None:
            self.priced += 1
            self.nano += cost.nano
            self.estimated |= cost.estimated
        elif block.served.usage or not block.error:
            self.unpriced += 1


class Placed(NamedTuple):
    """A block and its turn; `is_first` where the turn begins."""

    turn: Turn
    block: Block
    is_first: bool


def place(blocks: Iterable[Block]) -> Iterator[Placed]:
    """Yield each block with its turn, which has the sums of what came so far.

    Prompts in a row begin one turn. A request that is shown with all of its messages begins one, too: its prompts may
    be those of any earlier turn.
    """
    turn = Turn()
    is_open = False  # has it only prompts so far?
    is_listed = False  # do the messages of a request follow?
    numbered = 0
    for block in blocks:
        if isinstance(block, ResponseBlock) and block.request:
            # Of several answers to one request the first has its number, which is an anchor.
            block = replace(block, request=0) if block.request == numbered else block  # noqa: PLW2901
            numbered = block.request or numbered
        is_prompt = isinstance(block, MessageBlock) and block.role == "user" and not block.agent
        begins = isinstance(block, RequestBlock) or (is_prompt and not is_open and not is_listed)
        if begins:
            turn = Turn(number=turn.number + 1, time_ns=block.time_ns)
            is_open, is_listed = True, isinstance(block, RequestBlock)
        if is_prompt and not turn.prompt and isinstance(block, MessageBlock):
            turn.prompt = block.text
        elif isinstance(block, ResponseBlock | ToolCallBlock):
            is_open = is_listed = False
        if not isinstance(block, SessionStartBlock | SessionEndBlock):
            turn.add(block)
        yield Placed(turn, block, begins)
