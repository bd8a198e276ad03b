"""Findings: what a session paid for without need, each with its tokens and its price.

What is in the context is paid for by every request that follows: its tokens at the price of new input by the first one,
and at the price of cached input by the others until the history is compacted (at the price of input where the provider
has no cache). What was read from no cache though it should have been is a cache miss, with a price of its own. The
sizes of results and tool definitions are estimates, and so are their prices; a request's own tokens and recorded cost
are the log's. Findings of one request may overlap: a failed request may also carry a large result.

Only the main conversation is searched; calls of sub-agents count as use of a tool. What a fork copied from another
session was paid for there: these requests are in no finding.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal, NamedTuple

from sessionlog.context.cache_misses import AnsweredRequest, CacheFold, CacheMiss, Copied, Price, find_misses
from sessionlog.context.tokens import count_tokens, count_tokens_json
from sessionlog.events.envelope import Event
from sessionlog.events.money import read_usd
from sessionlog.events.tokens import TokenUsage
from sessionlog.hashes import digest_of
from sessionlog.sources.contents import text_of
from sessionlog.sources.record import server_of
from sessionlog.sources.volatile_lines import VOLATILE_LINES
from sessionlog.transcript.digests import raw_digest
from sessionlog.transcript.fold import OWN, has_compacted
from sessionlog.transcript.sent_prompt import SentPrompt

Json = Any
Kind = Literal["repeated_result", "large_result", "cache_miss", "compaction", "loop", "failed_request", "unused_tools"]

LARGE = 10_000
"""Tokens from which a result is large: a twentieth of the usual context window of 200,000."""
SMALL = 100
"""Tokens below which a repeated result is not worth a finding."""
LOOP = 3
"""Calls in a row, equal and with the same failed result, that are a loop."""

_UNIT = 1_000  # tokens that a rate is the price of: far below the tier of any price
_LEAST_LETTERS = SMALL  # no token is shorter than a letter
_MAX_SUBJECT = 160
_PATHS = ("file_path", "filePath", "absolute_path", "path", "filename", "file", "notebook_path", "target_file")
_OTHERS = ("command", "cmd", "url", "uri", "pattern", "query", "prompt")
_VOLATILE = VOLATILE_LINES["codex"]
_CAUSES: Mapping[str, str] = {
    "model": "another model", "tools": "other tools", "system": "another system prompt", "message": "an edited message",
    "expired": "a pause", "provider": "dropped by the provider", "not_in_log": "cause not in the log",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One occurrence.

    Attributes:
        kind: What it is.
        subject: Of what: a file, a command, a tool, an MCP server, a model, or the cause of a cache miss.
        request: The request at which it begins, from 1.
        time_ns: When that was answered; None where that is not logged.
        tokens: The tokens that were paid for.
        known_nano: Their recorded cost in nano-dollars.
        estimated_nano: Their estimated cost; both None without a price.
    """

    kind: Kind
    subject: str
    request: int
    time_ns: int | None
    tokens: int
    known_nano: int | None = None
    estimated_nano: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFindings:
    """The findings of a session.

    Attributes:
        findings: By kind, each in the order of the log.
        called: MCP servers and tools that were called, as the subjects of `unused_tools` name them.
    """

    findings: tuple[Finding, ...] = ()
    called: frozenset[str] = frozenset()


class _Result(NamedTuple):
    """A result or tool definition in the context: the first request that sends it, and the one that no longer does."""

    kind: Kind
    subject: str
    first: int
    tokens: int
    end: int | None = None


class _Run(NamedTuple):
    """Equal calls in a row with the same failed result: the requests that made them, one for each call."""

    digest: bytes
    subject: str
    requests: tuple[int, ...] = ()


def find_in_session(
    events: Iterable[Event], source: str, price: Price, copied: Collection[Copied] = ()
) -> SessionFindings:
    """Return the findings of a session's events.

    Args:
        events: All of them.
        source: The id of its agent.
        price: Prices tokens.
        copied: As in `CacheFold`.
    """
    fold = _FindingsFold(own=source in OWN, copied=copied)
    for event in events:
        fold.apply(event)
    return fold.findings(price)


class _FindingsFold:
    """Collects the facts of a session that findings are made of."""

    def __init__(self, *, own: bool, copied: Collection[Copied]) -> None:
        self._own = own
        self._cache = CacheFold(own=own, copied=copied)
        self._costs: list[tuple[bool, int | None]] = []  # of each answered request: it failed, its recorded cost
        self._results: list[_Result] = []
        self._first_open = 0  # results from here on are still in the context
        self._seen: set[bytes] = set()
        self._run = _Run(b"", "")
        self._runs: list[_Run] = []
        self._sent = SentPrompt[None]()
        self._tools: Json = None
        self._definitions: dict[str, _Result] = {}  # those that the latest request sent
        self._sent_definitions: list[_Result] = []
        self._called: set[str] = set()
        self._model = self._folder = ""
        self._is_wire = False

    def apply(self, event: Event) -> None:
        """Add the next event."""
        data = event.data if isinstance(event.data, Mapping) else {}
        if event.type == "tool.call":
            self._called.update(_names(data.get("tool")))
        if "agent" in data:
            return
        answered = len(self._cache.answered)
        self._cache.apply(event)
        if event.type == "session.start":
            self._folder = _text(data.get("work_dir")).rstrip("/")
            self._is_wire = "wire" in data
        elif event.type == "llm.request":
            self._model = _text(data.get("model")) or self._model
            self._request(data)
        elif event.type == "llm.response" and len(self._cache.answered) > answered:
            self._costs.append((bool(data.get("error")), read_usd(data.get("cost_usd"))[0]))
        elif event.type == "tool.call":
            self._result(data)
        elif (event.type == "compaction.end" and has_compacted(data)) or event.type == "history.clear":
            self._end_results()

    def _request(self, data: Mapping[str, Json]) -> None:
        if self._own:
            tools = data.get("tools", self._tools)
        else:
            self._sent.apply(data.get("sent"), lambda _: None)
            tools = self._sent.tools
        if tools is self._tools or tools == self._tools:
            return
        self._tools, at = tools, len(self._cache.answered)
        self._sent_definitions += [one._replace(end=at) for one in self._definitions.values()]
        sizes: dict[str, int] = {}
        for tool in tools if isinstance(tools, list | tuple) else ():
            for name in _names(_tool_name(tool)):
                if name.startswith("mcp ") or (self._own and not self._is_wire):
                    sizes[name] = sizes.get(name, 0) + count_tokens_json(tool, self._model)
        self._definitions = {name: _Result("unused_tools", name, at, size) for name, size in sizes.items()}

    def _result(self, data: Mapping[str, Json]) -> None:
        tool, given, has_failed = _text(data.get("tool")) or "unknown", data.get("input"), bool(data.get("error"))
        output = data.get("output")
        output = output if isinstance(output, str) else text_of(output)
        subject, at = self._subject(given, tool), len(self._cache.answered)
        call = digest_of(tool, raw_digest(given).hex())
        digest = digest_of(call.hex(), _without_volatile(output))
        if digest != self._run.digest or not has_failed:
            self._end_run()
        if has_failed:
            self._run = _Run(digest, f"{tool} {subject}" if subject != tool else tool, (*self._run.requests, at - 1))
        if len(output) < _LEAST_LETTERS:
            return
        is_repeated = digest in self._seen and not has_failed
        self._seen.add(digest)
        if is_repeated or len(output) >= LARGE:
            tokens = count_tokens(output, self._model)
            if is_repeated and tokens >= SMALL:
                self._results.append(_Result("repeated_result", subject, at, tokens))
            elif not is_repeated and tokens >= LARGE:
                self._results.append(_Result("large_result", tool, at, tokens))

    def _subject(self, given: Json, tool: str) -> str:
        """Return the file, command or the like that a call is about; a file with its project's folder in front."""
        values = given if isinstance(given, Mapping) else {}
        for key in (*_PATHS, *_OTHERS):
            value = values.get(key)
            words = " ".join(map(str, value)) if isinstance(value, list) else value
            if isinstance(words, str) and words:
                if key in _PATHS and self._folder and words.startswith(f"{self._folder}/"):
                    words = words[self._folder.rfind("/") + 1 :]
                return words.split("\n", 1)[0][:_MAX_SUBJECT]
        return tool

    def _end_run(self) -> None:
        if len(self._run.requests) >= LOOP:
            self._runs.append(self._run)
        self._run = _Run(b"", "")

    def _end_results(self) -> None:
        """Note that the results so far have left the context."""
        end = len(self._cache.answered)
        self._results[self._first_open :] = [one._replace(end=end) for one in self._results[self._first_open :]]
        self._first_open = len(self._results)
        self._seen.clear()

    def findings(self, price: Price) -> SessionFindings:
        """Return the findings, after the last event."""
        self._end_run()
        answered, usages = self._cache.answered, list(self._cache.usages.read())
        bill = _Bill(answered, usages, self._costs, price)
        held = [*self._results, *self._sent_definitions, *self._definitions.values()]
        found = [
            finding for one in held if one.kind != "unused_tools" or one.subject not in self._called
            for finding in bill.of_context(one)
        ]  # fmt: skip
        found += [_of_miss(miss, answered) for miss in find_misses(answered, usages, price)]
        for run in self._runs:
            found += bill.of_requests("loop", run.subject, run.requests[1:], run.requests[:1])
        for at, (has_failed, _) in enumerate(self._costs):
            if has_failed:
                found += bill.of_requests("failed_request", answered[at].model or "unknown", (at,))
        return SessionFindings(findings=tuple(found), called=frozenset(self._called))


class _Bill:
    """The prices of what a session's requests sent."""

    def __init__(
        self,
        answered: Sequence[AnsweredRequest],
        usages: Sequence[TokenUsage],
        costs: Sequence[tuple[bool, int | None]],
        price: Price,
    ) -> None:
        self._answered, self._usages, self._costs, self._price = answered, usages, costs, price
        self._is_cached = any(usage.cache_read for usage in usages)
        carried = [self._carried(at) for at in range(len(answered))]
        self._paid = list(accumulate((one.is_counted and not one.is_inherited for one in answered), initial=0))
        self._rates = list(accumulate((rate or 0 for rate in carried), initial=0))
        self._unpriced = list(accumulate((rate is None for rate in carried), initial=0))

    def _of(self, at: int, usage: TokenUsage) -> int | None:
        one = self._answered[at]
        return self._price(one.provider, one.model, usage, one.answered_ns)

    def _carried(self, at: int) -> int | None:
        """The price of `_UNIT` tokens that the request before sent as well."""
        if not self._answered[at].is_counted or self._answered[at].is_inherited:
            return 0
        return self._of(at, TokenUsage(cache_read=_UNIT) if self._is_cached else TokenUsage(input=_UNIT))

    def _new(self, at: int) -> int | None:
        """The price of `_UNIT` tokens that the request is the first to send: written to a cache if it wrote any."""
        usage = self._usages[at]
        if not usage.cache_write:
            return self._of(at, TokenUsage(input=_UNIT))
        return self._of(at, TokenUsage(cache_write=_UNIT, cache_write_1h=_UNIT if usage.cache_write_1h else 0))

    def of_context(self, one: _Result) -> Iterator[Finding]:
        """Yield the finding of something in the context, unless no request that this session paid for sent it."""
        answered, end = self._answered, len(self._answered) if one.end is None else one.end
        first = next((at for at in range(one.first, end) if answered[at].is_counted), end)
        paid = next((at for at in range(first, end) if self._paid[at + 1] > self._paid[at]), end)
        if paid >= end:
            return
        new, carried = (
            0 if answered[first].is_inherited else self._new(first),
            self._rates[end] - self._rates[first + 1],
        )
        is_unpriced = new is None or self._unpriced[end] > self._unpriced[first + 1]
        yield Finding(
            kind=one.kind, subject=one.subject, request=paid + 1, time_ns=answered[paid].answered_ns,
            tokens=one.tokens * (self._paid[end] - self._paid[first]),
            estimated_nano=None if is_unpriced else one.tokens * ((new or 0) + carried) // _UNIT,
        )  # fmt: skip

    def of_requests(
        self, kind: Kind, subject: str, requests: Iterable[int], but: Iterable[int] = ()
    ) -> Iterator[Finding]:
        """Yield the finding of whole requests, each once, unless they used no tokens."""
        numbers = [at for at in sorted(set(requests).difference(but) - {-1}) if not self._answered[at].is_inherited]
        tokens = sum(self._usages[at].total for at in numbers)
        if not tokens:
            return
        known = [cost for at in numbers if (cost := self._costs[at][1]) is not None]
        estimated = [self._of(at, self._usages[at]) for at in numbers if self._costs[at][1] is None]
        priced = [cost for cost in estimated if cost is not None]
        yield Finding(
            kind=kind, subject=subject, request=numbers[0] + 1, time_ns=self._answered[numbers[0]].answered_ns,
            tokens=tokens, known_nano=sum(known) if known else None, estimated_nano=sum(priced) if priced else None,
        )  # fmt: skip


def _of_miss(miss: CacheMiss, answered: Sequence[AnsweredRequest]) -> Finding:
    is_compaction = miss.reason == "compaction"
    return Finding(
        kind="compaction" if is_compaction else "cache_miss", request=miss.request, time_ns=miss.time_ns,
        subject=(answered[miss.request - 1].model or "unknown") if is_compaction else _CAUSES[miss.reason],
        tokens=miss.missed_tokens, estimated_nano=miss.cost_nano,
    )  # fmt: skip


def _names(tool: Json) -> Iterator[str]:
    """Yield the subject of a tool's name: its MCP server, else the tool."""
    if isinstance(tool, str) and tool:
        name, server = server_of(tool)
        server = server or (name.partition("/")[0] if "/" in name else "")
        yield f"mcp {server}" if server else f"tool {name}"


def _tool_name(tool: Json) -> Json:
    inner = tool.get("function") if isinstance(tool, Mapping) else None
    named = inner if isinstance(inner, Mapping) else tool
    return named.get("name") if isinstance(named, Mapping) else None


def _without_volatile(output: str) -> str:
    if not any(word in output[:_MAX_SUBJECT] for word in _VOLATILE):
        return output
    return "\n".join(line for line in output.split("\n") if not line.startswith(_VOLATILE))


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
