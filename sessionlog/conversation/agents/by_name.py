"""A client of a provider that is opened by the provider's name, when it is asked first.

Keys and addresses come from the environment, as the provider's own library reads them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from importlib import import_module
from typing import Any

from sessionlog.conversation.turns.pieces import Ask, Piece
from sessionlog.errors import MissingExtra

PROVIDERS = {"openai": "OpenAI", "anthropic": "Anthropic"}
"""Provider → the class of its client, in the library of the same name."""


class NamedClient:
    """Answers with a provider's client.

    Attributes:
        model: The model that is asked for.
        provider: The provider's name.
        runs_tools: The session runs the tools.
        is_async: The client blocks, in a thread of its own where an event loop runs.
    """

    runs_tools = False
    is_async = False

    def __init__(self, provider: str, model: str, adapt: Callable[[Any, str], Any]) -> None:
        self.provider, self.model = provider, model
        self._adapt, self._answers = adapt, None

    def answer(self, ask: Ask) -> Iterator[Piece] | AsyncIterator[Piece]:
        """Give the pieces of the answer.

        Raises:
            MissingExtra: The provider's library is not installed.
        """
        if self._answers is None:
            try:
                library = import_module(self.provider)
            except ModuleNotFoundError as error:
                if error.name != self.provider:
                    raise
                raise MissingExtra(f"{self.provider} is not installed: pip install {self.provider}") from error
            self._answers = self._adapt(getattr(library, PROVIDERS[self.provider])(), self.model)
        answers: Any = self._answers
        pieces: Iterator[Piece] | AsyncIterator[Piece] = answers.answer(ask)
        return pieces
