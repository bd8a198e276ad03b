"""What an adapter is: one method that turns a question into pieces."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Protocol

from sessionlog.conversation.turns.pieces import Ask, Piece


class Answers(Protocol):
    """Something that answers.

    Attributes:
        runs_tools: It calls the tools itself and gives `ToolReturned`; else the session runs them and asks again.
        model: The model that is asked for, None where it is not known before the answer.
        provider: Who serves it, None where nobody says.
    """

    runs_tools: bool
    model: str | None
    provider: str | None

    def answer(self, ask: Ask) -> Iterator[Piece] | AsyncIterator[Piece]:
        """Give the pieces of the answer as they come; what goes wrong is raised as the provider raises it."""
        ...
