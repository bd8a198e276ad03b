"""Records what Anthropic's client sends and receives, as its middleware.

    client = Anthropic(middleware=[SessionLogMiddleware(log)])

An attempt is one request: the client repeats failed ones. Streams are recorded as in `integrations.http`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from sessionlog.integrations.http import Exchange, Exchanges
from sessionlog.integrations.runs import library
from sessionlog.logger.session_logger import SessionLogger

with library("anthropic", "anthropic", "'anthropic>=2.12'"):
    from anthropic import Middleware


class SessionLogMiddleware(Middleware):
    """Records the messages of a client, sync or async.

    Args:
        log: The logger; without one there is a session of the middleware's own, which ends with `close`.
        address: The server's address; it names the provider.
        options: Arguments of `SessionLogger` for that session.
    """

    def __init__(
        self, log: SessionLogger | None = None, *, address: str = "https://api.anthropic.com", **options: Any
    ) -> None:
        self._exchanges = Exchanges(log, options)
        self._address = address

    def handle(self, request: Any, call_next: Callable[[Any], Any]) -> Any:
        """Send a request; the client's exceptions pass."""
        exchange = self._exchanges.open(f"{self._address}{request.url}", lambda: request.json)
        if exchange is None:
            return call_next(request)
        with exchange.watched():
            response = call_next(request)
        _follow(exchange, response, is_async=False)
        return response

    async def handle_async(self, request: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        """Send a request; the client's exceptions pass."""
        exchange = self._exchanges.open(f"{self._address}{request.url}", lambda: request.json)
        if exchange is None:
            return await call_next(request)
        with exchange.watched():
            response = await call_next(request)
        _follow(exchange, response, is_async=True)
        return response

    def close(self) -> None:
        """End the session, unless a logger was given."""
        self._exchanges.close()


def _follow(exchange: Exchange, response: Any, *, is_async: bool) -> None:
    received = getattr(response, "http_response", None)
    if received is None:  # another middleware has answered in place of the server
        exchange.end(GeneratorExit())
    else:
        exchange.follow(received, is_async=is_async)
