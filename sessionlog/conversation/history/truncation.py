"""Truncation: a history that has grown too long is cut, oldest first, and what is left is a valid conversation.

Of a history over its threshold, repaired, whole units go, oldest first, until three quarters of the budget are not
reached: a unit is an assistant's message with its tool results, or any other message. Never dropped are system
messages, a first message of a person behind them, the newest turn, calls that wait for their results, and the recent
messages, grown to whole units. So what is left is valid, and cutting it again drops nothing; where nothing can go, the
history comes back as it was. Every message is weighed once. A summary is one message in the place of those that were
dropped; it never makes a history longer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from operator import is_
from typing import Any, NamedTuple, Self

from sessionlog.conversation.history.rules import groups, is_summary, is_valid, last_turn, open_calls, repair
from sessionlog.conversation.history.settings import ConversationSettings, Strategy
from sessionlog.errors import InvalidHistory
from sessionlog.messages.message import Message

Count = Callable[[Message], int]
"""Estimates the tokens of a message."""


def summarised(summary: Callable[[Sequence[Message]], str], dropped: Sequence[Message]) -> str:
    """Ask the user's function for the text; what it raises passes through.

    Raises:
        InvalidHistory: It gave no text.
    """
    text = summary(dropped)
    if not isinstance(text, str):
        raise InvalidHistory(f"summary returned {type(text).__name__}; it returns a text")
    return text.strip()


def cap_summary(text: str, room: int, count: Count) -> tuple[list[Message], str | None]:
    """Return the summary as a message and None, or one that is cut to its room, or none, and a warning that says so.

    Args:
        text: What the summary says.
        room: The tokens that it may take.
        count: Weighs it: once, or as often as it takes to find where to cut.
    """
    whole = _stand_in(text)
    tokens = count(whole)
    if text and tokens <= room:
        return [whole], None
    least, most = 0, len(text)  # the longest beginning that fits is `least` letters long or more, and under `most`
    while most - least > 1:
        middle = (least + most) // 2
        if count(_stand_in(f"{text[:middle]}…")) <= room:
            least = middle
        else:
            most = middle
    if not least:
        reason = f"has {tokens:,} tokens where there is room for {room:,}" if text else "is empty"
        return [], f"the summary {reason}, so it was left out"
    return [
        _stand_in(f"{text[:least]}…")
    ], f"the summary was cut from {tokens:,} tokens to the {room:,} it has room for"


def _stand_in(text: str) -> Message:
    return Message("user", text, extra={"summary": True})


_TARGET = 0.75
_SUMMED_UP, _SUMMARY = 2, 10  # down to half of the budget, with a tenth for the summary: else each turn would bring one


class Truncation(int):
    """How many messages were dropped (an int), and what that did.

    Attributes:
        strategy: `drop_oldest`, `summarise`, or the name of the user's own function.
        dropped: The messages that are gone, oldest first; tool results that lost their call among them.
        tokens_before: The estimate before, with the system's.
        tokens_after: The estimate after.
        is_over_budget: It is still more than `max_conversation_tokens`: nothing more could be dropped.
        warning: What a user should know: it is still over budget, a summary was cut. None if there is nothing.
    """

    strategy: str
    dropped: tuple[Message, ...]
    tokens_before: int
    tokens_after: int
    is_over_budget: bool
    warning: str | None

    def __new__(
        cls,
        dropped: tuple[Message, ...] = (),
        *,
        strategy: str = "drop_oldest",
        tokens_before: int = 0,
        tokens_after: int = 0,
        is_over_budget: bool = False,
        warning: str | None = None,
    ) -> Self:
        """Make one; its number is how many were dropped."""
        made = super().__new__(cls, len(dropped))
        made.dropped, made.strategy, made.warning = dropped, strategy, warning
        made.tokens_before, made.tokens_after, made.is_over_budget = tokens_before, tokens_after, is_over_budget
        return made

    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self.dropped,), {}  # the rest is in __dict__; int's own would give the number


class Cut(NamedTuple):
    """What a truncation leaves: the messages, the tokens of each, and what was done."""

    messages: list[Message]
    counts: list[int]
    truncation: Truncation


class _Left(NamedTuple):
    messages: list[Message]
    dropped: tuple[Message, ...]
    warning: str | None = None


def truncate(
    messages: Sequence[Message],
    counts: Sequence[int],
    settings: ConversationSettings,
    *,
    count: Count,
    system_estimate: int = 0,
) -> Cut:
    """Cut a history if it has reached the threshold; the one that is given is not changed.

    Args:
        messages: The history, valid or not.
        counts: The tokens of each message.
        settings: Budget, threshold and strategy.
        count: Weighs messages that the truncation makes.
        system_estimate: Tokens that every request has besides the history.

    Raises:
        InvalidHistory: What the user's own function or summary returns cannot be used. What they raise passes through.
    """
    before = system_estimate + sum(counts)
    chosen, budget = settings.truncation_strategy, settings.max_conversation_tokens
    left, left_counts = _Left(list(messages), ()), list(counts)
    if before >= settings.truncation_threshold * budget:
        known = {id(message): tokens for message, tokens in zip(messages, counts, strict=True)}

        def weigh(message: Message) -> int:
            tokens = known.get(id(message))
            return count(message) if tokens is None else tokens

        if callable(chosen):
            left = _own(messages, chosen, settings)
        else:
            left = _cut(messages, settings, weigh, system_estimate)
        left_counts = [weigh(message) for message in left.messages]
    after = system_estimate + sum(left_counts)
    over = f"still over budget: {after:,} of {budget:,} tokens" if after > budget else None
    return Cut(
        left.messages,
        left_counts,
        Truncation(
            left.dropped,
            strategy=chosen if isinstance(chosen, str) else _name(chosen),
            tokens_before=before,
            tokens_after=after,
            is_over_budget=after > budget,
            warning="; ".join(filter(None, (left.warning, over))) or None,
        ),
    )


def _cut(messages: Sequence[Message], settings: ConversationSettings, weigh: Count, system_estimate: int) -> _Left:
    """Truncate by `drop_oldest` or `summarise`; the history itself is left if no message can go."""
    untouched = _Left(list(messages), ())
    if len(messages) <= settings.truncation_keep_recent + 1:
        return untouched
    made = repair(messages)
    places = [n for n, message in enumerate(made) if message is not None]
    history = [message for message in made if message is not None]
    units = _chosen(history, list(map(weigh, history)), settings, system_estimate)
    gone = {places[n] for start, end in units for n in range(start, end)}
    dropped = tuple(message for n, message in enumerate(messages) if made[n] is None or n in gone)
    if not dropped:
        return untouched
    left = [message for n, message in enumerate(made) if message is not None and n not in gone]
    summary = settings.summary if settings.truncation_strategy == "summarise" else None
    if summary is None or not units:
        return _Left(left, dropped)
    text = summarised(summary, dropped)
    room = min(sum(map(weigh, dropped)), settings.max_conversation_tokens // _SUMMARY)
    stand_in, warning = cap_summary(text, room, weigh)
    first = units[0][0]
    return _Left([*left[:first], *stand_in, *left[first:]], dropped, warning)


def _chosen(
    history: Sequence[Message], tokens: Sequence[int], settings: ConversationSettings, system_estimate: int
) -> list[tuple[int, int]]:
    """The units that go.

    For a summary more goes than must, so that it is not needed again soon. It does not stand for an older summary
    alone: each time at least one message that was said goes, so summing up comes to an end.
    """
    estimate = system_estimate + sum(tokens)
    goal = int(settings.max_conversation_tokens * _TARGET)
    units: list[tuple[int, int]] = []
    if estimate < goal:
        return units
    is_worth_it = settings.truncation_strategy != "summarise"
    if not is_worth_it:
        goal = settings.max_conversation_tokens // _SUMMED_UP
    for start, end in _droppable(history, settings.truncation_keep_recent):
        if estimate < goal and is_worth_it:
            break
        units.append((start, end))
        estimate -= sum(tokens[start:end])
        is_worth_it = is_worth_it or not is_summary(history[start])
    return units if is_worth_it else []


def _droppable(history: Sequence[Message], keep_recent: int) -> Iterable[tuple[int, int]]:
    """The units of a valid history that may go, oldest first."""
    tail = min(len(history) - keep_recent, last_turn(history))
    first = next((n for n, message in enumerate(history) if message.role != "system"), 0)
    for start, end in groups(history):
        is_first_word = start == first and history[start].role == "user" and not is_summary(history[start])
        if end > tail or (end == len(history) and open_calls(history)):
            return
        if history[start].role != "system" and not is_first_word:
            yield start, end


def _own(messages: Sequence[Message], strategy: Strategy, settings: ConversationSettings) -> _Left:
    """Let the user's function cut the repaired history, so that what is wrong with its result is its own doing."""
    name, made = _name(strategy), repair(messages)
    history = [message for message in made if message is not None]
    found = strategy(tuple(history), settings)
    if not isinstance(found, Sequence) or not all(isinstance(message, Message) for message in found):
        raise InvalidHistory(f"{name} returned {type(found).__name__}; a truncation returns a list of Message")
    left = list(found)
    newest = last_turn(history)
    if newest < len(history) and history[newest] not in left:
        raise InvalidHistory(f"{name} dropped the newest message of a person; a truncation keeps it")
    if not is_valid(left):
        raise InvalidHistory(f"{name} left a tool call without its result, or a result without its call")
    staying = Counter(map(id, left))  # one message may stand in a history twice
    dropped = []
    for message, mended in zip(messages, made, strict=True):
        if staying[id(mended)]:
            staying[id(mended)] -= 1
        else:
            dropped.append(message)
    is_untouched = not dropped and len(left) == len(history) and all(map(is_, left, history))
    return _Left(list(messages) if is_untouched else left, tuple(dropped))


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
