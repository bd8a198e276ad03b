"""What a command asks models for and what they answer, recorded as it passes.

Whatever goes wrong here is counted by the logger and goes no further: a request passes, recorded or not.
"""

from __future__ import annotations

import sys
import zlib
from typing import Any

from sessionlog.integrations.http import Exchange, Exchanges
from sessionlog.integrations.runs import Guard
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.messages.answers import reader_of
from sessionlog.messages.server_sent_events import parse_json
from sessionlog.proxy.requests import RECORDED, RequestHead

MAX_BODY = 64 << 20
"""Bytes of a request's body that are kept for its record: twice what the largest provider takes."""


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
            body: Its body as it was sent, packed or not; empty for one of more than MAX_BODY bytes.
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
    """Return a request's body as a JSON value."""
    for packing in reversed([name.strip().lower() for value in packings for name in value.split(",")]):
        body = _unpack(body, packing)
    return parse_json(body) or {}


def _unpack(body: bytes, packing: str) -> bytes:
    """Return a body unpacked, as far as MAX_BODY.

    Raises:
        ValueError: The packing is unknown.
    """
    if packing in ("gzip", "deflate"):
        return zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(body, MAX_BODY)
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
    return bytes(zstd.ZstdDecompressor().decompress(body, MAX_BODY))
