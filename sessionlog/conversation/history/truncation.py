"""Truncation: shorten a history that has grown too long, oldest messages first, to a valid conversation.

A history over its threshold is repaired; then whole units are dropped, oldest first, until the estimate is below three
quarters of the budget. A unit is an assistant message with its tool results, or any other message. Never dropped are
system messages, a first user message right after them, the newest turn, open calls, and the recent messages, extended
to whole units. The result is valid, and truncating it again drops nothing; where nothing can be dropped, the history is
returned unchanged. Every message is estimated once. A summary is one message in the place of the dropped ones; it never
makes a history longer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from operator import is_
from typing import Any, NamedTuple, Self

from sessionlog.conversation.history.rules import groups, is_summary, is_valid, last_turn, open_calls, repair_each
from sessionlog.conversation.history.settings import ConversationSettings, Strategy
from sessionlog.errors import InvalidHistory
from sessionlog.messages.message import Message

Count = Callable[[Message], int]
"""Estimates the tokens of a message."""


def make_summary(summary: Callable[[Sequence[Message]], str], dropped: Sequence[Message]) -> str:
    """Return the text of the user's function; its exceptions pass through.

    Raises:
        InvalidHistory: It did not return a text.
    """
    text = summary(dropped)
    if not isinstance(text, str):
        raise InvalidHistory(f"summary returned {type(text).__name__}; it returns a text")
    return text.strip()


def cap_summary(text: str, room: int, count: Count) -> tuple[list[Message], str | None]:
    """Return the summary as a message, cut to its room where needed, and a warning if it was cut or left out.

    Args:
        text: The summary.
        room: The tokens that it may take.
        count: Estimates its tokens: once, or several times to find where to cut.
    """
    whole = _summary_message(text)
    tokens = count(whole)
    if text and tokens <= room:
        return [whole], None
    least, most = 0, len(text)  # the longest beginning that fits is `least` letters long or more, and under `most`
    while most - least > 1:
        middle = (least + most) // 2
        if count(_summary_message(f"{text[:middle]}…")) <= room:
            least = middle
        else:
            most = middle
    if not least:
        reason = f"has {tokens:,} tokens where there is room for {room:,}" if text else "is empty"
        return [], f"the summary {reason}, so it was left out"
    return [
        _summary_message(f"{text[:least]}…")
    ], f"the summary was cut from {tokens:,} tokens to the {room:,} it has room for"


def _summary_message(text: str) -> Message:
    return Message("user", text, extra={"summary": True})


_TARGET = 0.75
_SUMMARISE_TO, _SUMMARY_SHARE = 2, 10  # drop to half of the budget, a tenth for the summary: else each turn needs one


class Truncation(int):
    """The number of dropped messages (an int), and details.

    Attributes:
        strategy: `drop_oldest`, `summarise`, or the name of the custom function.
        dropped: The dropped messages, oldest first, with tool results that had no call.
        tokens_before: The estimate before, system text included.
        tokens_after: The estimate after, system text included.
        is_over_budget: The estimate still exceeds `max_conversation_tokens`: nothing more could be dropped.
        warning: A text for the user: still over budget, or the summary was cut. None without one.
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
        """Create it; its value is `len(dropped)`."""
        made = super().__new__(cls, len(dropped))
        made.dropped, made.strategy, made.warning = dropped, strategy, warning
        made.tokens_before, made.tokens_after, made.is_over_budget = tokens_before, tokens_after, is_over_budget
        return made

    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self.dropped,), {}  # the rest is in __dict__; int's own would pass the number


class Cut(NamedTuple):
    """The result of a truncation: the messages left, the tokens of each, and the report."""

    messages: list[Message]
    counts: list[int]
    truncation: Truncation


class _Remaining(NamedTuple):
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
    """Return a truncated copy of a history that has reached the threshold, else an unchanged one.

    Args:
        messages: The history, valid or not.
        counts: The tokens of each message.
        settings: Budget, threshold and strategy.
        count: Estimates messages that the truncation creates.
        system_estimate: Tokens of a request besides the history: system text and tools.

    Raises:
        InvalidHistory: The custom strategy or the summary function returned something unusable. Their exceptions pass
            through.
    """
    before = system_estimate + sum(counts)
    chosen, budget = settings.truncation_strategy, settings.max_conversation_tokens
    left, left_counts = _Remaining(list(messages), ()), list(counts)
    if before >= settings.truncation_threshold * budget:
        known = {id(message): tokens for message, tokens in zip(messages, counts, strict=True)}

        def estimate(message: Message) -> int:
            tokens = known.get(id(message))
            return count(message) if tokens is None else tokens

        if callable(chosen):
            left = _apply_custom(messages, chosen, settings)
        else:
            left = _drop_oldest(messages, settings, estimate, system_estimate)
        left_counts = [estimate(message) for message in left.messages]
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


def _drop_oldest(
    messages: Sequence[Message], settings: ConversationSettings, estimate: Count, system_estimate: int
) -> _Remaining:
    """Truncate by `drop_oldest` or `summarise`; the history is returned unchanged if no message can be dropped."""
    unchanged = _Remaining(list(messages), ())
    if len(messages) <= settings.truncation_keep_recent + 1:
        return unchanged
    made = repair_each(messages)
    places = [n for n, message in enumerate(made) if message is not None]
    history = [message for message in made if message is not None]
    units = _units_to_drop(history, list(map(estimate, history)), settings, system_estimate)
    gone = {places[n] for start, end in units for n in range(start, end)}
    dropped = tuple(message for n, message in enumerate(messages) if made[n] is None or n in gone)
    if not dropped:
        return unchanged
    left = [message for n, message in enumerate(made) if message is not None and n not in gone]
    summary = settings.summary if settings.truncation_strategy == "summarise" else None
    if summary is None or not units:
        return _Remaining(left, dropped)
    text = make_summary(summary, dropped)
    room = min(sum(map(estimate, dropped)), settings.max_conversation_tokens // _SUMMARY_SHARE)
    summary_messages, warning = cap_summary(text, room, estimate)
    first = units[0][0]
    return _Remaining([*left[:first], *summary_messages, *left[first:]], dropped, warning)


def _units_to_drop(
    history: Sequence[Message], tokens: Sequence[int], settings: ConversationSettings, system_estimate: int
) -> list[tuple[int, int]]:
    """Return the half-open ranges of the units to drop.

    `summarise` drops more than necessary, so that the next summary is not due soon. It never replaces only an older
    summary: at least one other message is dropped each time, so repeated truncation ends.
    """
    estimate = system_estimate + sum(tokens)
    goal = int(settings.max_conversation_tokens * _TARGET)
    units: list[tuple[int, int]] = []
    if estimate < goal:
        return units
    is_worth_it = settings.truncation_strategy != "summarise"
    if not is_worth_it:
        goal = settings.max_conversation_tokens // _SUMMARISE_TO
    for start, end in _droppable(history, settings.truncation_keep_recent):
        if estimate < goal and is_worth_it:
            break
        units.append((start, end))
        estimate -= sum(tokens[start:end])
        is_worth_it = is_worth_it or not is_summary(history[start])
    return units if is_worth_it else []


def _droppable(history: Sequence[Message], keep_recent: int) -> Iterable[tuple[int, int]]:
    """Yield the units of a valid history that may be dropped, oldest first."""
    tail = min(len(history) - keep_recent, last_turn(history))
    first = next((n for n, message in enumerate(history) if message.role != "system"), 0)
    for start, end in groups(history):
        is_first_prompt = start == first and history[start].role == "user" and not is_summary(history[start])
        if end > tail or (end == len(history) and open_calls(history)):
            return
        if history[start].role != "system" and not is_first_prompt:
            yield start, end


def _apply_custom(messages: Sequence[Message], strategy: Strategy, settings: ConversationSettings) -> _Remaining:
    """Call the custom strategy. It gets the repaired history, so that any fault in the result is its own."""
    name, made = _name(strategy), repair_each(messages)
    history = [message for message in made if message is not None]
    found = strategy(tuple(history), settings)
    if not isinstance(found, Sequence) or not all(isinstance(message, Message) for message in found):
        raise InvalidHistory(f"{name} returned {type(found).__name__}; a truncation returns a list of Message")
    left = list(found)
    newest = last_turn(history)
    if newest < len(history) and history[newest] not in left:
        raise InvalidHistory(f"{name} dropped the newest user message; a truncation keeps it")
    if not is_valid(left):
        raise InvalidHistory(f"{name} left a tool call without its result, or a result without its call")
    remaining = Counter(map(id, left))  # a history may contain one message object twice
    dropped = []
    for message, repaired in zip(messages, made, strict=True):
        if remaining[id(repaired)]:
            remaining[id(repaired)] -= 1
        else:
            dropped.append(message)
    is_unchanged = not dropped and len(left) == len(history) and all(map(is_, left, history))
    return _Remaining(list(messages) if is_unchanged else left, tuple(dropped))


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
