"""Items: the content of a window by names for people, with sizes; and content that is in the window several times.

Every piece belongs to exactly one item, so the items sum to all pieces. Several readings of one file are one item, and
so are the tool definitions of one MCP server.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sessionlog.context.xray.measure import TOOL_INSTRUCTIONS
from sessionlog.context.xray.parts import Item
from sessionlog.context.xray.pieces import Piece
from sessionlog.sources.record import server_of

_MIN_TOKENS = 30  # smaller repeats do not matter
_TIMES = ("", "once", "twice", "three times", "four times", "five times", "six times", "seven times", "eight times")


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """Something that is in the window several times.

    Attributes:
        kind: `file` for several readings of one file, `content` for the same text.
        name: Its name, which may quote the log.
        count: The number of copies.
        tokens: All copies together, estimated.
        spare_tokens: All copies without the largest, estimated.
    """

    kind: str
    name: str
    count: int
    tokens: int
    spare_tokens: int

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return asdict(self)


def list_items(kinds: Sequence[str], pieces: Sequence[Piece], tools: Sequence[Piece], *, system: str) -> list[Item]:
    """Return all items in the order of their first pieces.

    Args:
        kinds: For each piece the kind of its part.
        pieces: The pieces of the messages.
        tools: The tool definitions.
        system: The name of pieces of kind `system`.
    """
    groups: defaultdict[Any, list[tuple[str, str, Piece]]] = defaultdict(list)
    for tool in tools:
        if tool.kind != "tool":
            groups[TOOL_INSTRUCTIONS].append(("tools", tool.name, tool))
            continue
        server = server_of(tool.name)[1]
        name = f"mcp {server} tool definitions" if server else f"tool definition {tool.name}"
        groups["tools", server or ("", tool.name)].append(("tools", name, tool))
    for place, (kind, piece, name) in enumerate(zip(kinds, pieces, name_pieces(kinds, pieces), strict=True)):
        if kind == "system":
            groups[piece.name or system].append((kind, piece.name or system, piece))
        elif piece.is_read and piece.kind == "result" and piece.call_digest:
            groups[piece.call_digest].append((kind, name, piece))
        else:
            groups[_PROMPT if name == _PROMPT else place].append((kind, name, piece))
    return [_item(members) for members in groups.values()]


def _item(members: Sequence[tuple[str, str, Piece]]) -> Item:
    """Make an item of its pieces, each with kind and name; the item gets those of the first piece."""
    kind, name, first = members[0]
    if any(one[0] != kind for one in members):
        kind = "tool_results"  # readings of a file before this turn and in it
    tokens, count = (sum(getattr(piece, size) for _, _, piece in members) for size in ("tokens", "count"))
    return Item(kind=kind, name=_with_times(name, first, count), tokens=tokens, count=count)


def find_repeats(kinds: Sequence[str], pieces: Sequence[Piece]) -> list[Repeat]:
    """Return repeated content, that with the most `spare_tokens` first."""
    groups: dict[tuple[str, bytes], list[tuple[Piece, str]]] = {}
    for piece, name in zip(pieces, name_pieces(kinds, pieces), strict=True):
        if piece.kind == "result" and piece.is_read and piece.call_digest:
            groups.setdefault(("file", piece.call_digest), []).append((piece, name))
        elif piece.kind in ("text", "result") and piece.digest and piece.tokens >= _MIN_TOKENS:
            groups.setdefault(("content", piece.digest), []).append((piece, name))
    found = []
    for (kind, _), members in groups.items():
        sizes = [piece.tokens for piece, _ in members]
        if len(members) > 1:
            found.append(
                Repeat(
                    kind=kind, name=members[0][1], count=len(members), tokens=sum(sizes),
                    spare_tokens=sum(sizes) - max(sizes),
                )
            )  # fmt: skip
    return sorted(found, key=lambda repeat: (-repeat.spare_tokens, repeat.name))


def name_pieces(kinds: Sequence[str], pieces: Sequence[Piece]) -> list[str]:
    """Return a name for each piece; pieces of the same base name are numbered from `#1`."""
    seen: Counter[str] = Counter()
    names = []
    for kind, piece in zip(kinds, pieces, strict=True):
        name = _base_name(piece, is_prompt=kind == "turn" and piece.role == "user")
        seen[name] += 1
        if piece.kind == "result" and piece.is_read:
            names.append(f"{piece.name} {piece.target}")
        elif name == _PROMPT:
            names.append(name)
        elif piece.count > 1:
            names.append(f"{name}, {piece.count} of them")
        else:
            about = f": {piece.target}" if piece.target else ""
            names.append(f"{name} #{seen[name]}{about}")
    return names


_PROMPT = "the prompt of this turn"


def _base_name(piece: Piece, *, is_prompt: bool) -> str:
    match piece.kind:
        case "result":
            return f"tool results of {piece.name}"
        case "call":
            return f"call of {piece.name}"
        case "reasoning":
            return "reasoning"
        case "image":
            return "image" if piece.count == 1 else "images"
    return _PROMPT if is_prompt else f"{piece.role} message"


def _with_times(name: str, piece: Piece, count: int) -> str:
    if count < 2 or not (piece.is_read and piece.kind == "result"):
        return name
    times = _TIMES[count] if count < len(_TIMES) else f"{count} times"
    return f"{name} \N{MULTIPLICATION SIGN}{count} (the same file {times})"
