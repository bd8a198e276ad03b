"""Advice in real homes, against numbers worked out here from the raw logs, with rules and list prices of its own.

The homes have cache misses, compactions and repeated results; large results are found there with a lower threshold.
They have no loops, no failed requests that used tokens, and no MCP servers.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sessionlog.context import findings
from sessionlog.context.tokens import count_tokens
from tests.real.data import needs_homes
from tests.real.reading import Reading

PRICES = {
    "claude-opus-4-5": (5_000, 6_250, 10_000, 500), "claude-sonnet-4-5": (3_000, 3_750, 6_000, 300),
    "claude-sonnet-4": (3_000, 3_750, 6_000, 300), "claude-haiku-4-5": (1_000, 1_250, 2_000, 100),
    "gpt-5": (1_250, 1_250, 1_250, 125),
}  # fmt: skip
"""The beginning of a model's name → nano-dollars of a token that is new, written to a cache, written for an hour, read."""


class Request(NamedTuple):
    """A response of the main conversation."""

    id: str
    model: str
    new: int
    written: int
    long: int
    read: int

    @property
    def prompt(self) -> int:
        """All that it sent."""
        return self.new + self.written + self.read

    @property
    def rates(self) -> Sequence[int]:
        """The list prices of its model."""
        return PRICES[max((name for name in PRICES if self.model.startswith(name)), key=len)]


class Result(NamedTuple):
    """A tool's result: the call that it answers, its text, and how many requests were answered before it."""

    call: str
    text: str
    at: int


class Session(NamedTuple):
    """A raw log in the order of its rows; `compacted` are the numbers of requests before each compaction."""

    requests: list[Request]
    results: list[Result]
    compacted: list[int]


def claude(folder: Path) -> Iterator[Session]:
    """Yield the main sessions of Claude Code, the original before its forks and resumed copies."""
    read = [
        [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        for path in folder.glob(".claude/projects/*/*.jsonl")
        if not path.name.startswith("agent-")
    ]
    for rows in sorted(read, key=lambda rows: max(row.get("timestamp") or "" for row in rows)):
        session, calls = Session([], [], []), {}
        for row in rows:
            message = row.get("message") or {}
            content = message.get("content")
            blocks = content if isinstance(content, list) else []
            if row.get("isSidechain") or row["type"] not in ("user", "assistant", "system"):
                continue
            if row.get("subtype") == "compact_boundary":
                session.compacted.append(len(session.requests))
            if row["type"] == "assistant" and message["model"] != "<synthetic>":
                calls |= {
                    one["id"]: json.dumps([one["name"], one["input"]]) for one in blocks if one["type"] == "tool_use"
                }
                if message["id"] not in {one.id for one in session.requests}:
                    session.requests.append(_of_anthropic(message))
            session.results.extend(
                Result(calls.get(one["tool_use_id"], one["tool_use_id"]), _text(one["content"]), len(session.requests))
                for one in blocks
                if one["type"] == "tool_result"
            )
        yield session


def _of_anthropic(message: Mapping[str, Any]) -> Request:
    usage = message["usage"]
    long = (usage.get("cache_creation") or {}).get("ephemeral_1h_input_tokens", 0)
    return Request(
        message["id"], message["model"], usage["input_tokens"], usage["cache_creation_input_tokens"], long,
        usage["cache_read_input_tokens"],
    )  # fmt: skip


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(one.get("text", "") for one in content)


def codex(folder: Path) -> Iterator[Session]:
    """Yield the sessions of Codex, whose input includes what it read from the cache and wrote to it."""
    for path in sorted(folder.glob(".codex/*sessions/**/*.jsonl")):
        session, model = Session([], [], []), ""
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        has_records = any(row["type"] == "token_usage_record" for row in rows)
        for row in rows:
            data = row["payload"]
            model = data["model"] if row["type"] == "turn_context" else model
            if row["type"] == "token_usage_record":
                usage, name = data["usage"], data["response_id"]
            elif data.get("type") == "token_count" and data.get("info") and not has_records:
                usage, name = data["info"]["last_token_usage"], json.dumps([path.name, data["info"]])
            else:
                continue
            if name not in {one.id for one in session.requests}:
                read, written = usage["cached_input_tokens"], usage.get("cache_write_input_tokens", 0)
                new = usage["input_tokens"] - read - written
                session.requests.append(Request(name, model, new, written, 0, read))
        yield session


READERS = {
    "claude": claude, "claude-1.0.9": claude, "claude-2.0.30": claude, "claude-th": claude, "codex": codex,
    "codex-0.118.0": codex,
}  # fmt: skip


def misses(session: Session) -> Iterator[tuple[str, int, int]]:
    """Yield (id, missed tokens, nano-dollars) of each request that did not find what the one before it had left."""
    names_writes = any(one.written for one in session.requests)
    for before, one in zip(session.requests, session.requests[1:], strict=False):
        if not before.prompt or not one.prompt:
            continue
        expected = min(before.read + before.written if names_writes else before.prompt, one.prompt)
        missed = expected - one.read
        if missed >= 256 and missed >= expected / 20:
            new, written, long, read = one.rates
            from_writes = min(missed, one.written)
            from_long = min(from_writes, one.long)
            paid = (missed - from_writes) * new + (from_writes - from_long) * written + from_long * long
            yield one.id, missed, paid - missed * read


def carried(sessions: Sequence[Session], least: int, *, repeated: bool) -> tuple[int, int, int]:
    """Return (count, tokens, nano-dollars) of results of `least` tokens that stayed in the context.

    A token counts once for each request that sent it, and each request in one session only, the first that has it.
    """
    seen: set[str] = set()
    count = tokens = nano = 0
    for session in sessions:
        own = [one.id not in seen for one in session.requests]
        seen |= {one.id for one in session.requests}
        known: set[tuple[str, str]] = set()
        begun = 0
        for result in session.results:
            for end in [one for one in session.compacted if begun < one <= result.at]:
                known, begun = set(), end
            is_repeated = (result.call, result.text) in known
            known.add((result.call, result.text))
            size = count_tokens(result.text, session.requests[max(0, result.at - 1)].model)
            end = next((one for one in session.compacted if one > result.at), len(session.requests))
            senders = [at for at in range(result.at, end) if own[at]]
            if is_repeated != repeated or size < least or not senders:
                continue
            count, tokens = count + 1, tokens + size * len(senders)
            for at in senders:
                one = session.requests[at]
                new, written, long, read = one.rates
                first = (long if one.long else written) if one.written else new
                nano += size * (first if at == result.at else read)
    return count, tokens, nano


def found(reading: Reading, *kinds: str) -> tuple[int, int, int]:
    """(count, tokens, nano-dollars) of the findings of some kinds."""
    rows = [row for row in reading.document("advise", "--jobs", "1")["rows"] if row["kind"] in kinds]
    return (
        sum(row["count"] for row in rows), sum(row["tokens"] for row in rows),
        round(sum(row["cost_usd"] for row in rows) * 1e9),
    )  # fmt: skip


@pytest.mark.parametrize("home", [pytest.param(home, marks=needs_homes(home)) for home in READERS])
def test_cache_misses_are_those_of_the_raw_log(read, home):
    """Each once, also where forks and resumed sessions have copies of it; compactions are a kind of their own."""
    reading = read(home)
    expected = {name: sums for one in READERS[home](reading.folder) for name, *sums in misses(one)}
    assert expected
    sums = [sum(column) for column in zip(*expected.values(), strict=True)]
    assert found(reading, "cache_miss", "compaction") == (len(expected), *sums)


@needs_homes("claude-2.0.30")
def test_repeated_results_are_those_of_the_raw_log(read):
    """A fork pays for what its own requests sent."""
    reading = read("claude-2.0.30")
    expected = carried(list(claude(reading.folder)), findings.SMALL, repeated=True)
    assert expected[0]
    assert found(reading, "repeated_result") == expected


@pytest.mark.parametrize(
    "home", [pytest.param(home, marks=needs_homes(home)) for home in ("claude", "claude-1.0.9", "claude-2.0.30")]
)
def test_large_results_are_those_of_the_raw_log(read, home, monkeypatch):
    """Those of 20 tokens and more: no tool of the homes printed 10,000."""
    monkeypatch.setattr(findings, "LARGE", 20)
    monkeypatch.setattr(findings, "_LEAST_LETTERS", 20)
    reading = read(home)
    expected = carried(list(claude(reading.folder)), 20, repeated=False)
    assert expected[0]
    assert found(reading, "large_result") == expected
