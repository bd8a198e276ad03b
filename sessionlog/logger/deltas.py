"""Deltas: redacts a secret that a streamed answer spreads over several events.

Each `llm.delta` is in the file before `emit` returns, so nothing can be held back until a secret is complete.
Instead the end of the streamed text is kept: each piece is searched together with it, and what belongs to a secret that
began before is redacted. A word at a piece's end that begins as a token does (`ghp_x1`) is redacted at once, before it
is long enough to be certain; if it was no secret, the whole answer in `llm.response` still has it.

What stays readable: the letters of a token that were written before its prefix was whole (`gh` of `ghp_…`), the first
lines' frame of a key, and those letters of a value known only by its name (`password=`) that came before it was long
enough to be recognised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sessionlog.events.redact import MARK
from sessionlog.events.secrets import find_spans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_STREAMED = frozenset({"content", "reasoning_content", "tool_call_args"})
_SHORT_TAIL, _TAIL, _LONGEST_TAIL = 96, 256, 16_384
"""Bytes that are kept: of text without a secret, of what may be a URL, of a secret that may continue."""
_OF_WORDS = frozenset(byte for byte in range(128) if chr(byte).isalnum() or byte in b"_-.")
_MOST_STREAMS = 100


class Deltas:
    """The last bytes of each answer that is being streamed."""

    __slots__ = ("_begin_of_token", "_tails")

    def __init__(self) -> None:
        self._begin_of_token: Callable[[bytes], int] | None = None
        self._tails: dict[tuple[str, str], bytes] = {}

    def __bool__(self) -> bool:
        return bool(self._tails)

    def forget(self) -> None:
        """Drop the streams: an answer is complete, or a new one begins."""
        self._tails.clear()

    def redact(self, data: Any) -> tuple[Any, bool]:
        """Return an `llm.delta`'s data without the parts of secrets that span deltas.

        And whether all of the data was searched: then its line need not be.
        """
        is_whole = type(data) is dict
        if not is_whole and not isinstance(data, Mapping):
            return data, False
        changed = {}
        stream = f"{data.get('agent')} {data.get('tool_call_id')}" if "agent" in data or "tool_call_id" in data else ""
        for field, piece in data.items():
            if field in _STREAMED and type(piece) is str:
                if piece:
                    clean = self._clean((field, stream), piece.encode("utf-8", "surrogatepass"))
                    if clean is not None:
                        changed[field] = clean.decode("utf-8", "replace")
            elif field != "index" or type(piece) is not int:
                is_whole = False
        return ({**data, **changed}, False) if changed else (data, is_whole)

    def _loaded(self) -> Callable[[bytes], int]:
        from sessionlog.events.secrets.search import begin_of_token

        self._begin_of_token = begin_of_token
        return begin_of_token

    def _clean(self, stream: tuple[str, str], piece: bytes) -> bytes | None:
        """Return the piece without secrets; None if it has none."""
        tail = self._tails.get(stream, b"")
        text = tail + piece
        found = find_spans(text)
        token = -1
        if text[-1] in _OF_WORDS:
            token = (self._begin_of_token or self._loaded())(text)
        if len(self._tails) >= _MOST_STREAMS:
            self._tails.clear()
        if not found and token < 0:
            self._tails[stream] = text[-_TAIL:] if b":/" in text or b"%" in text else text[-_SHORT_TAIL:]
            return None
        spans = [(begin, end) for begin, end, _ in found]
        if token >= 0 and not (spans and spans[-1][1] > token):
            spans.append((token, len(text)))
        kept = max(0, len(text) - _TAIL)
        if spans[-1][1] == len(text):  # it may continue in the next piece
            kept = max(min(kept, spans[-1][0]), len(text) - _LONGEST_TAIL)
        self._tails[stream] = text[kept:]
        pieces: list[bytes] = []
        done = len(tail)
        for begin, end in spans:
            if end > done:
                pieces += (text[done : max(begin, done)], MARK)
                done = end
        return b"".join((*pieces, text[done:])) if pieces else None
