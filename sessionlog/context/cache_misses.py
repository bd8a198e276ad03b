"""Cache misses: why a request did not find in the provider's cache what the request before it left there.

A provider's cache holds a prompt from its beginning: tools, system prompt, messages. So the cached part ends at the
first block in which two requests differ. Logged prompts are compared: our own logs and those of some agents hold them;
for other agents only the model and the time are known. The number of missed tokens is the provider's count.

Lifetimes are the providers' defaults: five minutes, or an hour where the log shows a cache write for an hour
(Anthropic's documentation of prompt caching, 2026-11).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from sessionlog.errors import LogNotReadable, Problem, problems_dict
from sessionlog.events.envelope import Event
from sessionlog.events.money import usd
from sessionlog.events.times import SECOND, format_time
from sessionlog.events.tokens import TokenUsage
from sessionlog.events.usage import read_usage
from sessionlog.sources.find import name_of_session
from sessionlog.sources.protocol import Log
from sessionlog.sources.values import text
from sessionlog.transcript.damage import Damage
from sessionlog.transcript.digests import raw_digest
from sessionlog.transcript.fold import OWN, ConversationFold, has_compacted
from sessionlog.transcript.inherited import read_session
from sessionlog.transcript.sent_prompt import SentPrompt
from sessionlog.transcript.splice import Splice
from sessionlog.transcript.usages import ResponseUsages

Json = Any
SCHEMA = "sessionlog.cache/1"
Reason = Literal["model", "tools", "system", "message", "compaction", "expired", "provider", "not_in_log"]
"""Why: another model; the first block that differs; a compaction; more time between the two than the cache's lifetime;
nothing differs, so the provider dropped the entry; or the log does not hold the prompts."""
Price = Callable[[str, str, TokenUsage, int | None], int | None]
"""(provider, model, usage, time_ns) → nano-dollars; None where there is no price."""

_SHORT_NS, _LONG_NS = 5 * 60 * SECOND, 60 * 60 * SECOND
_MIN_MISSED = 256  # tokens; providers round to blocks of up to 128
_MIN_SHARE = 0.05  # of the expected tokens; smaller misses are not reported
_MAX_NAME = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheMiss:
    """A request that did not find in the cache what the request before it left there.

    Attributes:
        request: Its number, from 1.
        time_ns: When it was answered; None where that is not logged.
        reason: Why.
        detail: Which block differs, and how; it may quote the log.
        expected_tokens: Tokens that the request before it left in the cache.
        cached_tokens: Tokens that it found there.
        cost_nano: The extra cost of the missed tokens over cached ones, in nano-dollars; None without a price.
    """

    request: int
    time_ns: int | None
    reason: Reason
    detail: str
    expected_tokens: int
    cached_tokens: int
    cost_nano: int | None = None

    @property
    def missed_tokens(self) -> int:
        """Tokens that were expected in the cache and not found there."""
        return self.expected_tokens - self.cached_tokens

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "request": self.request,
            "time": None if self.time_ns is None else format_time(self.time_ns),
            "reason": self.reason,
            "detail": self.detail,
            "expected_tokens": self.expected_tokens,
            "cached_tokens": self.cached_tokens,
            "missed_tokens": self.missed_tokens,
            "cost_usd": None if self.cost_nano is None else usd(self.cost_nano),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheReport:
    """The cache misses of a session.

    Attributes:
        source: The id of the agent whose log it is.
        session: The session's id.
        path: Its log.
        requests: Its answered requests.
        known_prompts: Those whose prompt the log holds.
        cached_tokens: All tokens read from a cache.
        misses: In order.
        problem_count: Damaged pieces of the log.
        problems: The first of them.
    """

    source: str
    session: str
    path: str
    requests: int
    known_prompts: int
    cached_tokens: int
    misses: tuple[CacheMiss, ...]
    problem_count: int = 0
    problems: tuple[Problem, ...] = ()

    @property
    def missed_tokens(self) -> int:
        """The missed tokens of all misses."""
        return sum(miss.missed_tokens for miss in self.misses)

    @property
    def cost_nano(self) -> int | None:
        """The sum of the known costs; None where none is known."""
        known = [miss.cost_nano for miss in self.misses if miss.cost_nano is not None]
        return sum(known) if known else None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document."""
        return {
            "schema": SCHEMA,
            "source": self.source,
            "session": self.session,
            "path": self.path,
            "requests": self.requests,
            "known_prompts": self.known_prompts,
            "cached_tokens": self.cached_tokens,
            "missed_tokens": self.missed_tokens,
            "cost_usd": None if self.cost_nano is None else usd(self.cost_nano),
            "misses": [miss.to_dict() for miss in self.misses],
            "problems": problems_dict(self.problem_count, self.problems),
        }


@dataclass(frozen=True, slots=True)
class _Block:
    """A part of a prompt: a digest of its content without `cache_control` marks, and its name."""

    digest: bytes
    name: str
    count: int = 1


_UNKNOWN = _Block(b"", "message")
"""One of several messages that were one element."""


@dataclass(slots=True, kw_only=True)
class AnsweredRequest:
    """A request: its prompt, its model and times, and how it differs from the counted request before it.

    The messages are empty where the log does not hold them, and dropped after the comparison. An inherited request was
    copied from the session that this one was forked from, and that one paid for it.
    """

    is_known: bool
    tools: tuple[_Block, ...]
    system: tuple[_Block, ...]
    messages: tuple[_Block, ...]
    model: str
    sent_ns: int | None
    provider: str = ""
    answered_ns: int | None = None
    has_long_lifetime: bool = False
    is_counted: bool = False
    is_inherited: bool = False
    reason: Reason = "provider"
    detail: str = ""


Copied = tuple[int | None, TokenUsage]
"""The time and usage of a response that another session paid for."""


def cache_misses(
    log: Log, session: str | None = None, *, price: Price | None = None, copied: Collection[Copied] = ()
) -> CacheReport:
    """Find the cache misses of a session.

    Args:
        log: Its log.
        session: Its id in a log that holds several; None for the first.
        price: Prices tokens; None leaves costs out.
        copied: As in `CacheFold`.

    Raises:
        LogNotReadable: The log cannot be read, or has no answered request.
    """
    fold = CacheFold(own=log.source.id in OWN, copied=copied)
    damage = Damage()
    for event in damage.events(read_session(log, session)):
        fold.apply(event)
    if not fold.answered:
        raise LogNotReadable(f"{log.path}: no request of it has an answer, so its cache use is unknown")
    answered, usages = fold.answered, list(fold.usages.read())
    return CacheReport(
        source=log.source.id, session=name_of_session(log, session), path=log.path, requests=len(answered),
        known_prompts=sum(one.is_known for one in answered), cached_tokens=sum(usage.cache_read for usage in usages),
        misses=tuple(find_misses(answered, usages, price)), problem_count=damage.count, problems=damage.problems,
    )  # fmt: skip


def find_misses(
    answered: Sequence[AnsweredRequest], usages: Sequence[TokenUsage], price: Price | None
) -> Iterator[CacheMiss]:
    """Yield the cache misses of a session's answered requests, each with its usage."""
    is_cached = any(usage.cache_read for usage in usages)
    names_writes = {one.provider for one, usage in zip(answered, usages, strict=True) if usage.cache_write}
    last: tuple[AnsweredRequest, TokenUsage] | None = None
    for number, (one, usage) in enumerate(zip(answered, usages, strict=True), start=1):
        if not one.is_counted:
            continue  # it failed, or the provider did not count it
        if last is not None and is_cached:
            # a provider that reports no writes caches each prompt by itself
            before, left = last
            cached = left.cache_read + left.cache_write if before.provider in names_writes else left.prompt
            expected = min(cached, usage.prompt)
            missed = expected - usage.cache_read
            if missed >= max(_MIN_MISSED, _MIN_SHARE * expected) and not one.is_inherited:
                cost = None if price is None else _cost(price, one, usage, missed)
                yield CacheMiss(
                    request=number, time_ns=one.answered_ns, reason=one.reason, detail=one.detail,
                    expected_tokens=expected, cached_tokens=usage.cache_read, cost_nano=cost,
                )  # fmt: skip
        last = one, usage


def _reason(old: AnsweredRequest, new: AnsweredRequest, *, is_compacted: bool) -> tuple[Reason, str]:
    """Return why the new request missed the cache: the first difference from the old one, and its description."""
    if old.model != new.model:
        return "model", f"{old.model or 'unknown'} → {new.model or 'unknown'}"
    if old.provider != new.provider:
        return "model", f"served by {new.provider or 'unknown'} instead of {old.provider or 'unknown'}"
    is_known = old.is_known and new.is_known
    if is_known and (found := _difference(old.tools, new.tools)):
        return "tools", found
    if is_known and (found := _difference(old.system, new.system)):
        return "system", found
    if is_compacted:
        return "compaction", "the history was compacted"
    if is_known and (found := _difference(old.messages, new.messages, may_grow=True)):
        return "message", found
    idle_ns = 0 if old.answered_ns is None or new.sent_ns is None else new.sent_ns - old.answered_ns
    lifetime_ns = _LONG_NS if old.has_long_lifetime else _SHORT_NS
    if idle_ns > lifetime_ns:
        minutes = idle_ns // (60 * SECOND)
        return "expired", f"{minutes:,} minutes passed; the cache lives for {lifetime_ns // (60 * SECOND)}"
    if not is_known:
        return "not_in_log", "the log does not hold the prompts"
    return "provider", "the prompts are equal: the provider dropped its cache"


def _difference(old: Sequence[_Block], new: Sequence[_Block], *, may_grow: bool = False) -> str:
    """Describe the first block that differs; "" where none does. `may_grow`: of messages, which are numbered."""
    same = 0
    while same < min(len(old), len(new)) and old[same].digest == new[same].digest:
        same += 1
    if same == len(old) and (may_grow or same == len(new)):
        return ""
    number = f" #{same + 1}" if may_grow else ""
    if same == len(old):
        return f"{new[same].name}{number} added"
    if same == len(new) or new[same].digest in {block.digest for block in old[same + 1 :]}:
        return f"{old[same].name}{number} dropped"
    if old[same].digest in {block.digest for block in new[same + 1 :]}:
        return f"{new[same].name}{number} added"
    return f"{old[same].name}{number} changed"


def _cost(price: Price, one: AnsweredRequest, usage: TokenUsage, missed: int) -> int | None:
    """Return the cost of the missed tokens, less their cost as cached ones."""
    missed = min(missed, usage.input + usage.cache_write)
    written = min(missed, usage.cache_write)
    long = min(written, usage.cache_write_1h)
    paid = TokenUsage(input=missed - written, cache_write=written, cache_write_1h=long)
    dear = price(one.provider, one.model, paid, one.answered_ns)
    cheap = price(one.provider, one.model, TokenUsage(cache_read=missed), one.answered_ns)
    return None if dear is None or cheap is None else max(0, dear - cheap)


class CacheFold:
    """Collects a session's answered requests with their prompts.

    Attributes:
        answered: The answered requests, in order.
        usages: The usage of each.
    """

    def __init__(self, *, own: bool, copied: Collection[Copied] = ()) -> None:
        """Begin.

        Args:
            own: As in `ConversationFold`.
            copied: Responses that another session paid for, which the log itself does not mark: resumed sessions of
                Claude Code up to 2.0.14.
        """
        self._copied = copied
        self.answered: list[AnsweredRequest] = []
        self.usages = ResponseUsages()
        self._own = own
        self._conversation = ConversationFold(finds_new=False)  # for our own logs: their requests send the conversation
        self._blocks: list[_Block] = []  # one for each element of the conversation
        self._sent = SentPrompt[_Block]()  # for other agents' logs
        self._tools: tuple[_Block, ...] = ()
        self._system: tuple[_Block, ...] = ()
        self._request: AnsweredRequest | None = None
        self._previous: AnsweredRequest | None = None  # the last request that the provider counted
        self._is_compacted = False

    def apply(self, event: Event) -> None:
        """Add the next event; those of sub-agents are ignored."""
        data = event.data if isinstance(event.data, Mapping) else {}
        if "agent" in data:
            return
        for splice in self._conversation.apply(event) if self._own else ():
            self._apply(splice)
        if event.type == "session.start":
            self.usages.begin(data)
        elif event.type == "llm.request":
            self._start_request(data, event.time_ns)
        elif event.type == "llm.response":
            self._finish_request(data, event.time_ns)
        elif event.type == "compaction.end" and has_compacted(data):
            self._is_compacted = True

    def _apply(self, splice: Splice) -> None:
        splice.split(self._blocks, lambda block: [block] if block.count == 1 else [_UNKNOWN] * block.count)
        splice.put(self._blocks, [replace(_message(one.raw), count=len(one.entry.messages)) for one in splice.added])

    def _start_request(self, data: Mapping[str, Json], time_ns: int | None) -> None:
        messages: Sequence[_Block] | None = None
        if self._own:
            system, tools = self._conversation.system, data.get("tools")
            self._system = (_block(system, "system prompt"),) if system else ()
            self._tools = _tools(tools) if isinstance(tools, list | tuple) else self._tools
            messages = self._blocks if self._conversation.holds_messages else None
        else:
            if self._sent.apply(data.get("sent"), _message):
                numbered = enumerate(self._sent.system, start=1)
                self._system = tuple(_block(part, f"part {n} of the system prompt") for n, part in numbered)
                self._tools = _tools(self._sent.tools)
            messages = self._sent.messages
        self._request = AnsweredRequest(
            is_known=messages is not None, tools=self._tools, system=self._system, messages=tuple(messages or ()),
            model=text(data.get("model")), sent_ns=time_ns,
        )  # fmt: skip

    def _finish_request(self, data: Mapping[str, Json], time_ns: int | None) -> None:
        request, self._request = self._request, None
        if request is None:
            return
        start, usage = self.usages.start, read_usage(data.get("usage"))[0]
        named = (request.model, data.get("model"), start.get("resolved_model"), start.get("model"))
        request.model = next(filter(None, map(text, named)), "")
        request.provider, request.answered_ns = self.usages.provider_of(data), time_ns
        request.has_long_lifetime = bool(usage.cache_write_1h)
        request.is_inherited = data.get("inherited") is True or (
            bool(self._copied) and (time_ns, _disjoint(usage)) in self._copied
        )
        request.is_counted = bool(usage.prompt) and data.get("quality") != "estimated"
        self.answered.append(request)
        self.usages.add(data)
        if not request.is_counted:
            request.messages = ()
            return
        if self._previous is not None:
            request.reason, request.detail = _reason(self._previous, request, is_compacted=self._is_compacted)
            self._previous.messages = ()
        self._previous, self._is_compacted = request, False


def _disjoint(usage: TokenUsage) -> TokenUsage:
    """Return a usage in the classes that the ledger can compare."""
    return TokenUsage(
        input=usage.input, output=usage.output, cache_read=usage.cache_read, cache_write=usage.cache_write
    )


def _tools(tools: Json) -> tuple[_Block, ...]:
    listed = tools if isinstance(tools, list | tuple) else ()
    return tuple(_block(tool, f"tool {_tool_name(tool)}") for tool in listed)


def _tool_name(tool: Json) -> str:
    inner = tool.get("function") if isinstance(tool, Mapping) else None
    named = inner if isinstance(inner, Mapping) else tool
    return _name(named, "name") or "unnamed"


def _message(value: Json) -> _Block:
    return _block(value, f"{_name(value, 'role') or 'unknown'} message")


def _name(value: Json, key: str) -> str:
    name = value.get(key) if isinstance(value, Mapping) else None
    return name[:_MAX_NAME] if isinstance(name, str) else ""


def _block(value: Json, name: str) -> _Block:
    try:
        return _Block(raw_digest(_without_marks(value)), name)
    except RecursionError:  # nested deeper than any provider accepts
        return _Block(raw_digest(None), name)


def _without_marks(value: Json) -> Json:
    """Return the value without `cache_control` marks, which move from request to request."""
    if isinstance(value, Mapping):
        return {key: _without_marks(item) for key, item in value.items() if key != "cache_control"}
    return [_without_marks(item) for item in value] if isinstance(value, list | tuple) else value
