"""Parts: shares of a window by kind and name, fitted to the provider's count. Their sum is always the total.

The log gives an estimate, the provider a count. `fit` reconciles them:

- if the log holds the whole prompt, the difference is the estimate's error, and all parts are scaled;
- if it does not (other agents' logs hold neither system prompt nor tools), or if the count is more than a quarter above
  the estimate, the difference becomes a separate part;
- an estimate above the count is scaled down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from msgspec import structs

from sessionlog.context.xray.pieces import Piece
from sessionlog.sources.record import server_of

KINDS = ("system", "tools", "history", "tool_results", "turn", "not_in_log")
NOT_IN_LOG = "not in the log (system prompt, tools, overhead)"
NO_PROMPT = "not in the log (system prompt, overhead)"
NO_TOOLS = "not in the log (tools, overhead)"
NOT_SENT = "not in the log (what the provider adds)"
_MAX_ERROR_RATIO = 1.25
_NAMES = {"text": "", "call": "tool calls", "reasoning": "reasoning", "image": "images"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing in the window.

    Attributes:
        kind: The kind of its part, one of `KINDS`: `history` and `tool_results` are before the last user prompt,
            `turn` is that prompt and everything after it.
        name: A name for people, which may quote the log.
        tokens: Its size, estimated, and scaled like the parts.
        count: The number of its pieces.
    """

    kind: str
    name: str
    tokens: int
    count: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(Item):
    """A share of the window: all pieces of one kind and name, as of a tool or a role.

    Attributes:
        share: Its share of the total, 0 to 1.
    """

    share: float = 0.0


def sort_pieces(pieces: Sequence[Piece]) -> list[str]:
    """Return for each piece the kind of its part.

    `system` is system text at the beginning, `turn` the last user prompt and everything after it; between them are
    `tool_results` and `history`.
    """
    first = next((n for n, piece in enumerate(pieces) if piece.role != "system"), len(pieces))
    turn = _turn_start(pieces)
    return [
        "system" if place < first
        else "turn" if place >= turn
        else "tool_results" if piece.kind == "result"
        else "history"
        for place, piece in enumerate(pieces)
    ]  # fmt: skip


def _turn_start(pieces: Sequence[Piece]) -> int:
    """Return the index of the last user prompt; of several prompts in a row that of the first."""
    last = next((n for n in range(len(pieces) - 1, -1, -1) if _is_prompt(pieces[n])), len(pieces))
    while 0 < last < len(pieces) and _is_prompt(pieces[last - 1]):
        last -= 1
    return last


def _is_prompt(piece: Piece) -> bool:
    return piece.role == "user" and piece.kind in ("text", "image") and piece.count == 1


def make_parts(kinds: Sequence[str], pieces: Sequence[Piece], tools: Sequence[Piece], *, system: str) -> list[Part]:
    """Sum pieces by kind and name, in the order of `KINDS`, within one the largest first.

    Args:
        kinds: The result of `sort_pieces`.
        pieces: The pieces of the messages.
        tools: The tool definitions.
        system: The name of the system text.
    """
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    named = [("tools", _named_tool(tool.name), tool) for tool in tools]
    named += [(kind, _name(kind, piece, system), piece) for kind, piece in zip(kinds, pieces, strict=True)]
    for kind, name, piece in named:
        tokens, count = sums.get((kind, name), (0, 0))
        sums[kind, name] = tokens + piece.tokens, count + piece.count
    parts = [Part(kind=kind, name=name, tokens=tokens, count=count) for (kind, name), (tokens, count) in sums.items()]
    return sorted(parts, key=lambda part: (KINDS.index(part.kind), -part.tokens, part.name))


def _named_tool(tool: str) -> str:
    """Return the part's name for a tool: all tools of an MCP server are one part."""
    server = server_of(tool)[1]
    return f"mcp {server}" if server else tool


def _name(kind: str, piece: Piece, system: str) -> str:
    if kind == "system":
        return piece.name or system
    if piece.kind == "result":
        return piece.name if kind == "tool_results" else f"results of {piece.name}"
    return _NAMES.get(piece.kind) or piece.name or piece.role


def fit(pieces: Sequence[Piece], size: int, *, is_whole: bool) -> tuple[list[Piece], int]:
    """Return pieces scaled to the size of their request, and how many of its tokens they lack.

    Each piece is rounded once, so that all groupings of the pieces have the same sum. Pieces of size 0 stay 0.

    Args:
        pieces: As estimated, with the tools.
        size: The size of the request: the provider's count, else the assumed one.
        is_whole: Whether the log holds the whole prompt.
    """
    sizes = [piece.tokens for piece in pieces]
    estimate = sum(sizes)
    if missing := missing_of(estimate, size, is_whole=is_whole):
        return list(pieces), missing
    if estimate == size:
        return list(pieces), 0
    scaled = zip(pieces, apportion(sizes, size), strict=True)
    return [piece if piece.tokens == one else structs.replace(piece, tokens=one) for piece, one in scaled], 0


def missing_of(estimate: int, size: int, *, is_whole: bool) -> int:
    """Return how many tokens of a request are not in the log; 0 if the difference is the estimate's error."""
    is_error = size <= estimate or (is_whole and size <= estimate * _MAX_ERROR_RATIO)
    return 0 if is_error else size - estimate


def name_missing(*, has_prompt: bool, has_tools: bool) -> str:
    """Return the name of the missing part; if the log holds both prompt and tools, the provider has added it."""
    if has_tools:
        return NOT_SENT if has_prompt else NO_PROMPT
    return NO_TOOLS if has_prompt else NOT_IN_LOG


def with_shares(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Return the parts with their shares."""
    whole = sum(part.tokens for part in parts)
    return tuple(replace(part, share=part.tokens / whole if whole else 0.0) for part in parts)


def apportion(sizes: Sequence[int], whole: int) -> list[int]:
    """Scale sizes so that they sum to `whole`, each with an error below 1; sizes that sum to 0 stay."""
    summed = sum(sizes)
    if not summed:
        return list(sizes)
    ends, grown = [], 0
    for size in sizes:
        grown += size
        ends.append(grown * whole // summed)
    return [end - start for start, end in zip([0, *ends[:-1]], ends, strict=True)]
