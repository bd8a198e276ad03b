"""What a command asks models for and what they answer, recorded as it passes.

Whatever goes wrong here is counted by the logger and goes no further: a request passes, recorded or not.
"""

from __future__ import annotations

import sys
import zlib
from typing import Any

from sessionlog.integrations.http import MAX_BODY, Exchange, Exchanges, parse_body
from sessionlog.integrations.runs import Guard
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.messages.answers import reader_of
from sessionlog.proxy.requests import RECORDED, RequestHead


class Unrecorded:
    """Takes the place of an `Exchange` where no model is asked: nothing of it is kept."""

    def expect(self, status: int, content_type: str = "", encoding: str = "identity") -> None:
        """Do nothing."""

    def add(self, piece: bytes) -> None:
        """Do nothing."""

    def end(self, error: BaseException | None = None) -> None:
        """Do nothing."""

    def fail(self, error: BaseException) -> None:
        """Do nothing."""


class Recording:
    """The requests of one command.

    Args:
        log: Where they are recorded; its owner ends the session.

    Attributes:
        refused: The methods of requests for a WebSocket, which are refused because they could not be recorded.
    """

    def __init__(self, log: SessionLogger) -> None:
        self._log = log
        self.refused: list[str] = []
        self._exchanges = Exchanges(log, {})

    def is_recorded(self, head: RequestHead) -> bool:
        """Return whether a request asks a model in a format that can be read, and no run within this one records it."""
        return head.method == "POST" and reader_of(head.target) is not None and not head.values(RECORDED.lower())

    def begin(self, head: RequestHead, url: str, body: bytes, began: float) -> Exchange | Unrecorded:
        """Record a request that was sent.

        Args:
            head: Its head.
            url: Its address at the provider.
            body: Its body as it was sent, packed or not; the first MAX_BODY bytes and some more are enough.
            began: When its head was read, on the monotonic clock.
        """
        exchange: Exchange | None = None
        if self.is_recorded(head):
            with Guard(self._log):
                packings = head.values("content-encoding")
                exchange = self._exchanges.open(
                    url, lambda: _json_of(body, packings), headers=head.headers, began=began
                )
        return exchange or Unrecorded()

    def count_failure(self, error: Exception) -> None:
        """Count an error of the proxy itself in the logger's health."""
        self._log.count_failure(error)

    def close(self) -> None:
        """Record what has come of answers that are still open."""
        self._exchanges.close()


def _json_of(body: bytes, packings: list[str]) -> Any:
    """Return a request's body as a JSON value.

    Raises:
        ValueError: A packing is unknown, or it is more than is read.
    """
    for packing in reversed([name.strip().lower() for value in packings for name in value.split(",")]):
        body = _unpack(body, packing)
    return parse_body(body)


def _unpack(body: bytes, packing: str) -> bytes:
    """Return a body unpacked; of one that has more than MAX_BODY bytes, one byte more.

    Raises:
        ValueError: The packing is unknown.
    """
    if packing in ("gzip", "deflate"):
        return zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(body, MAX_BODY + 1)
    if packing == "zstd":  # Codex's, where it talks to its own service
        return _unpack_zstd(body)
    if packing != "identity":
        raise ValueError(f"a request packed with {packing[:20]}")
    return body


def _unpack_zstd(body: bytes) -> bytes:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return bytes(zstd.ZstdDecompressor().decompress(body, MAX_BODY + 1))
