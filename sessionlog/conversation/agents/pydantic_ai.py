"""A pydantic-ai agent: it runs its own tools, and every request to its model is told as an answer of its own.

The session's system text is added to the agent's own instructions. Options that are model settings are given as such,
others to the run, as `deps=` or `usage_limits=`. What the model hands to an output tool is the answer's text.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from sessionlog.conversation.agents.pydantic_answer import PydanticAnswer, can_stream, names_of, text_in
from sessionlog.conversation.agents.pydantic_request import run_of
from sessionlog.conversation.turns.pieces import Ask, Asking, Piece, TextDelta


class PydanticAI:
    """Asks a pydantic-ai agent."""

    runs_tools = True
    is_async = True

    def __init__(self, agent: Any) -> None:
        if not hasattr(agent, "iter"):
            raise TypeError(f"{type(agent).__name__} is no agent of pydantic-ai; its Agent(model) makes one")
        self.provider, self.model = names_of(agent.model)
        self._agent = agent

    async def answer(self, ask: Ask) -> AsyncIterator[Piece]:
        """Run the agent from the history that it is asked to answer; all pieces have to be taken in one task."""
        answer: PydanticAnswer | None = None
        async with self._agent.iter(None, **run_of(ask)) as run:
            try:
                async for node in run:
                    if self._agent.is_model_request_node(node):
                        for piece in (*answer.rest(), Asking()) if answer else ():
                            yield piece
                        answer = PydanticAnswer(self.provider)
                        if can_stream(run.ctx.deps.model):
                            async with node.stream(run.ctx) as events:
                                async for event in events:
                                    for text in text_in(event):
                                        yield TextDelta(text)
                    elif answer and self._agent.is_call_tools_node(node):
                        deps = run.ctx.deps
                        streamed = can_stream(deps.model)
                        for piece in answer.whole(node.model_response, deps.tool_manager, streamed=streamed):
                            yield piece
                        async with node.stream(run.ctx) as events:
                            async for event in events:
                                for piece in answer.tools(event):
                                    yield piece
                    elif answer and self._agent.is_end_node(node):
                        for piece in answer.final(node.data.output):
                            yield piece
            except Exception:
                for piece in answer.rest() if answer else ():
                    yield piece
                raise
