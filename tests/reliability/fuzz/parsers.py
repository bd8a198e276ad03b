"""Targets that need no home: the reader, the grammars, prices and settings, usage objects, secrets."""

import gzip
import json
import os
import re
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from sessionlog.analytics.budgets.rules import parse_budgets
from sessionlog.analytics.window import describe_window
from sessionlog.analytics.window_grammar import parse_usage_window
from sessionlog.analytics.zones import resolve_zone
from sessionlog.errors import (
    InvalidPrices,
    InvalidSessionId,
    InvalidSettings,
    InvalidWindow,
    LogNotReadable,
    Problem,
)
from sessionlog.events.payload_json import payload
from sessionlog.events.redact import redact_line
from sessionlog.events.secrets import find_spans, may_hold_secret
from sessionlog.events.times import parse_time
from sessionlog.events.tokens import TokenUsage
from sessionlog.events.usage import loggable_usage, read_usage
from sessionlog.logger.ids import check_session_id
from sessionlog.pricing.book import PriceBook
from sessionlog.pricing.price_list import load_price_list, parse_price_list
from sessionlog.reader.check import check_log
from sessionlog.reader.repair import repair_log
from sessionlog.reader.rows import Rows
from sessionlog.reader.stream import read_events
from sessionlog.settings import load_settings
from sessionlog.sources.scrub import scrub_file
from tests.reliability.fuzz.laws import Inputs, Target, demand
from tests.security.hostile import logs as hostile_logs
from tests.security.hostile_bytes import byte_logs
from tests.security.vt import findings

try:
    from compression import zstd
except ImportError:
    from backports import zstd  # type: ignore[no-redef]

ROOT = Path(__file__).parents[3]
KINDS = frozenset(re.findall(r"[a-z][a-z0-9_]+", str(Problem.__doc__).partition("kind:")[2].partition("detail:")[0]))
"""The documented kinds of problems, and the words around them."""

_NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
_CLASSES = ("input", "output", "cache_read", "cache_write", "reasoning", "cache_write_1h")
_LONG_AGO = 1_700_000_000


def texts_of(folder: str, pattern: str) -> list[bytes]:
    """Return the contents of test data that are small enough to be mutated."""
    contents = (path.read_bytes() for path in sorted((ROOT / folder).rglob(pattern)))
    return [content for content in contents if len(content) <= 1 << 15]


def check_problem(problem: Problem, size: int | None = None) -> None:
    """A problem has a documented kind and a place that exists."""
    demand(problem.kind in KINDS, f"the kind {problem.kind!r} is not documented")
    demand(problem.line >= 0 <= problem.offset, f"a place before the file: {problem}")
    demand(problem.length >= 0, f"a negative length: {problem}")
    demand(size is None or problem.offset <= size, f"a place behind the file's {size} bytes: {problem}")


def check_counts(usage: TokenUsage) -> None:
    """Token counts are whole numbers that a report can add up."""
    for name in _CLASSES:
        count = getattr(usage, name)
        demand(type(count) is int and 0 <= count <= 2**63, f"{name} is {count!r}")


def _reader(folder: Path) -> Inputs:
    """The first byte chooses: plain, gzip or zstd bytes; plain bytes that are packed first."""
    suffixes = (".jsonl", ".jsonl", ".jsonl", ".jsonl.gz", ".jsonl.zst")
    logs = [
        *texts_of("testdata/replay", "*.jsonl"),
        *texts_of("testdata/reader", "*"),
        *hostile_logs().values(),
        *byte_logs().values(),
    ]
    small = [log for log in logs if len(log) <= 1 << 14]
    seeds = [b"\x00" + log for log in small]
    seeds += [b"\x03" + gzip.compress(log, mtime=0) for log in small[:20]]
    seeds += [b"\x04" + zstd.compress(log) for log in small[:20]]

    def check(data: bytes) -> None:
        suffix = suffixes[data[0] % len(suffixes)] if data else ".jsonl"
        path = folder / f"log{suffix}"
        path.write_bytes(data[1:])
        os.utime(path, (_LONG_AGO, _LONG_AGO))
        plain = suffix == ".jsonl"
        items = list(read_events(path, max_line=1 << 13))
        for item in items:
            if isinstance(item, Problem):
                check_problem(item, len(data) if plain else None)
            else:
                demand(isinstance(item.type, str) and isinstance(item.ts, str), f"no envelope: {item!r}")
                payload(item)
                parse_time(item.ts)
        rest = data[1:].strip(b"\x00 \r\n\t\xef\xbb\xbf")
        demand(not plain or items or not rest, "bytes of which neither an event nor a problem tells")
        with Rows(str(path), max_line=1 << 13) as rows:
            for row in (*rows.read(), *rows.last()):
                if isinstance(row, Problem):
                    check_problem(row)
        checked = check_log(path)
        demand(checked.events >= 0 <= checked.damaged, "negative counts")
        if plain:
            _check_repair(path)

    return Inputs(check, seeds, header=1)


def _check_repair(path: Path) -> None:
    """What a repair leaves has the same events, and no damage that a repair would take out."""
    before = [item for item in read_events(path) if not isinstance(item, Problem)]
    quarantine = Path(f"{path}.quarantine")
    quarantine.unlink(missing_ok=True)
    try:
        repaired = repair_log(path)
    except LogNotReadable:
        return
    if repaired.pieces:
        demand(quarantine.exists(), "bytes were taken out and not kept")
        os.utime(path, (_LONG_AGO, _LONG_AGO))
        after = [item for item in read_events(path) if not isinstance(item, Problem)]
        demand([event.to_dict() for event in after] == [event.to_dict() for event in before], "a repair changed events")


def _window(folder: Path) -> Inputs:
    texts = (
        "7d", "24h", "2w", "3mo", "today", "yesterday", "this-week", "last-month", "2026-11-21", "2026-11-01..",
        "..2026-11-21T09:00:00Z", "2026-11-01..2026-11-21", "2026-11-21T09:00:00.123456789+02:00", "last week", "now",
        "2026/11/21 09:00", "999999999999999999mo", "0001-01-01..9999-12-31", "5 days ago", "20261121", "2026-02-30",
    )  # fmt: skip
    zones = ("UTC", "Europe/Berlin", "Australia/Lord_Howe", "local", "Europe", "../etc/passwd", "berlin", "Asia/Gaza")
    seeds = [
        f"{since}|{until}|{zone}".encode() for since in texts for until, zone in (("", "UTC"), (texts[8], zones[1]))
    ]
    seeds += [f"7d||{zone}".encode() for zone in zones]

    def check(data: bytes) -> None:
        since, until, zone = [*data.decode("utf-8", "surrogateescape").split("|", 2), "", ""][:3]
        try:
            if zlib.crc32(data) % 16:  # an unknown zone is looked for in a folder of hundreds
                zone = "Europe/Berlin"
            resolve_zone(zone)
        except InvalidWindow as error:
            _check_words(error)
            zone = "UTC"
        try:
            window = parse_usage_window(since, until=until, now=_NOW, tz=zone)
            text = describe_window(window, zone, now=_NOW)
        except InvalidWindow as error:
            _check_words(error)
            return
        demand(findings(text.encode()) == [], f"a window in words holds controls: {text!r}")
        if window is not None and window.start_ns is not None and window.end_ns is not None:
            demand(window.start_ns < window.end_ns, "an empty window")
            again = parse_usage_window(f"{window.start}..{window.end}")
            demand(again is not None and (again.start_ns, again.end_ns) == (window.start_ns, window.end_ns),
                   "a window's own instants mean another one")  # fmt: skip

    return Inputs(check, seeds)


def _check_words(error: Exception) -> None:
    """What a person gets to read is plain, whatever was quoted."""
    shown = findings(str(error).encode("utf-8", "surrogatepass"))
    demand(shown == [] and len(str(error)) < 2000, f"an error's words: {shown[:1]} in {str(error)[:200]!r}")


def _ids(folder: Path) -> Inputs:
    texts = (
        "s-1",
        "20261121T100000Z-0a1b2c3d",
        "..",
        "a..b",
        "con",
        "COM1.txt",
        "a.jsonl",
        "é",
        "a/b",
        "a" * 129,
        ".a",
        "a.",
    )
    place = str(folder / "sessions")

    def check(data: bytes) -> None:
        text = data.decode("utf-8", "surrogateescape")
        try:
            name = check_session_id(text)
        except InvalidSessionId as error:
            _check_words(error)
            return
        path = os.path.join(place, f"{name}.jsonl")
        demand(
            os.path.dirname(os.path.normpath(path)) == place and name.isascii(), f"the id leaves its folder: {name!r}"
        )

    return Inputs(check, [text.encode() for text in texts])


def _settings(folder: Path) -> Inputs:
    path = folder / "config.toml"
    env = {"HOME": str(folder), "SESSIONLOG_CONFIG": str(path)}
    seeds = [
        b'session_dir = "~/logs"\nledger = "/tmp/l.sqlite"\ntimezone = "Europe/Berlin"\n',
        b'[prices."vllm/qwen3-32b"]\ninput = 0.1\noutput = 0.4\ncache_read = 0.01\n[prices."gpt-*"]\ninput = 1\noutput = 2\n',
        b'[budgets.daily]\nlimit_usd = 5\nperiod = "day"\nwarn_at = 0.8\n[budgets.team]\ntokens = 1000000\nwindow = "7d"\n',
        b'# comment\r\n[prices]\n"a/b" = {input = 1, output = 2, cache_write_1h = 3}\n"*" = {input = 1e3, output = nan}\n',
        *(match.encode() for page in sorted((ROOT / "docs").glob("*.md"))
          for match in re.findall(r"```toml\n(.*?)```", page.read_text(), re.DOTALL)),
    ]  # fmt: skip

    def check(data: bytes) -> None:
        path.write_bytes(data)
        try:
            settings = load_settings(env)
            book = PriceBook.load(settings.prices)
            parse_budgets(settings.budgets)
        except (InvalidSettings, InvalidPrices, LogNotReadable) as error:
            _check_size(error)
            return
        info = book.explain("vllm", "qwen3-32b")
        demand(
            info is None or info.pricing.input_per_mtok is None or info.pricing.input_per_mtok >= 0, "a negative price"
        )

    return Inputs(check, seeds)


def _check_size(error: Exception) -> None:
    demand(len(str(error)) < 20_000, f"{len(str(error))} characters of error")


def _prices(folder: Path) -> Inputs:
    """A question to the shipped list: provider, model, class counts."""
    book = PriceBook.load()
    names = [f"{provider}|{model['id']}" for provider, entry in load_price_list().providers.items()
             for model in entry["models"][:3]]  # fmt: skip
    names += ["bedrock|us.anthropic.claude-opus-4-5-20251101-v1:0", "vertex|claude-opus-4-5@20251101", "|gpt-5.3-codex",
              "openrouter|anthropic/claude-opus-4.5:beta", "ollama|llama3:8b", "azure|gpt-4o-2024-08-06", "|[1m]*?"]  # fmt: skip
    seeds = [f"{name}|10,20,30,40,5,6|2026-11-20".encode() for name in names[:200] + names[-7:]]

    def check(data: bytes) -> None:
        provider, model, counts, day = [*data.decode("utf-8", "surrogateescape").split("|", 3), "", "", "", ""][:4]
        numbers = [int(number) for number in re.findall(r"\d{1,15}", counts)[:6]]
        usage = TokenUsage(**dict(zip(_CLASSES, numbers, strict=False)))
        time_ns = parse_time(f"{day}T00:00:00Z")
        book.explain(provider, model)
        cost = book.price(provider, model, usage, time_ns or 0)
        demand(cost is None or (type(cost) is int and cost >= 0), f"a cost of {cost!r}")

    return Inputs(check, seeds)


def _price_list(folder: Path) -> Inputs:
    """A list of prices as data."""
    whole = load_price_list()
    head = {"source": whole.source, "retrieved_at": whole.date, "licence": "MIT", "unit": "USD per 1M tokens"}
    names = list(whole.providers)[:6]

    def written(names: list[str]) -> bytes:
        entries = {
            name: {key: value for key, value in whole.providers[name].items() if key != "models"} for name in names
        }
        models = [whole.providers[name]["models"][:4] for name in names]
        return b"\n".join(json.dumps(line).encode() for line in [head | {"providers": entries}, *models])

    seeds = [written(names), *(written([name]) for name in names)]

    def check(data: bytes) -> None:
        with suppress(InvalidPrices):
            for provider in parse_price_list(data).providers.values():
                provider["models"]

    return Inputs(check, seeds)


def _usage(folder: Path) -> Inputs:
    objects = [
        {"input": 812, "output": 96, "cache_read": 14_100, "total": 9},
        {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 3},
         "completion_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 15},
        {"input_tokens": 5, "output_tokens": 7, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20,
         "cache_creation": {"ephemeral_1h_input_tokens": 20}},
        {"promptTokenCount": 9, "candidatesTokenCount": 4, "thoughtsTokenCount": 2, "toolUsePromptTokenCount": 1},
        {"input_tokens": 5, "cache_read_tokens": 4, "details": {"reasoning_tokens": 1}}, {"usage": {"input_tokens": 4}},
    ]  # fmt: skip

    def check(data: bytes) -> None:
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            return
        usage, issues = read_usage(value)
        check_counts(usage)
        demand(all(type(issue) is str for issue in issues), f"issues: {issues!r}")
        demand((usage.reasoning <= usage.output and usage.cache_write_1h <= usage.cache_write) or issues or "input" in value,
               f"a part larger than its whole: {usage}")  # fmt: skip
        logged = loggable_usage(value)
        again, _ = read_usage(logged)
        demand(again == usage, f"what is logged reads as {again}, not {usage}")

    return Inputs(check, [json.dumps(one).encode() for one in objects])


def _secrets(folder: Path) -> Inputs:
    from sessionlog.events.secrets.rules import RULES

    samples = [sample.encode() if isinstance(sample, str) else sample
               for rule in RULES for sample in (*rule.positive, *rule.negative)]  # fmt: skip
    lines = [json.dumps({"data": {"text": sample.decode("utf-8", "replace")}}).encode() for sample in samples]

    def check(data: bytes) -> None:
        spans = find_spans(data)
        demand(not spans or may_hold_secret(data), "the first look would have skipped this line")
        place = 0
        for begin, end, rule in spans:
            demand(place <= begin < end <= len(data), f"spans overlap or leave the line: {spans}")
            demand(type(rule) is str, f"no rule: {rule!r}")
            place = end
        redacted = redact_line(data)
        demand(redacted is data or spans, "redacted without a span")
        if spans and _is_json(data):
            demand(_is_json(redacted), "a line of JSON is none after its secrets are taken out")

    return Inputs(check, [*samples, *lines])


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


def _scrub(folder: Path) -> Inputs:
    from sessionlog.events.secrets.rules import RULES

    samples = [sample.encode() if isinstance(sample, str) else sample for rule in RULES for sample in rule.positive]
    path, copy = folder / "log.jsonl", folder / "copies" / "log.jsonl"
    logs = [b"".join(json.dumps({"n": n, "text": sample.decode("utf-8", "replace")}).encode() + b"\n"
                     for n, sample in enumerate(samples[at : at + 4])) for at in range(0, len(samples), 4)]  # fmt: skip

    def check(data: bytes) -> None:
        path.write_bytes(data)
        found = scrub_file(str(path), copy=str(copy))
        demand(path.read_bytes() == data, "scrub touched the original")
        if data.startswith(b"SQLite format 3\0"):  # it is taken for a database, and is a damaged one
            return
        demand(not found.problem, found.problem)
        clean = copy.read_bytes()
        demand(found.counts or clean == data, "a copy differs though nothing was found")
        again = scrub_file(str(copy))
        demand(sum(again.counts.values()) <= sum(found.counts.values()), f"more secrets in the copy: {again.counts}")

    return Inputs(check, logs)


def _parser(name: str, make: Callable[[Path], Inputs], share: int) -> Target:
    return Target(name, partial(make), share)


def parser_targets() -> Sequence[Target]:
    """Return the targets of this module."""
    made: list[tuple[str, Any, int]] = [
        ("reader", _reader, 60), ("window", _window, 100), ("ids", _ids, 80), ("settings", _settings, 40),
        ("prices", _prices, 60), ("price-list", _price_list, 20), ("usage", _usage, 120), ("secrets", _secrets, 60),
        ("scrub", _scrub, 20),
    ]  # fmt: skip
    return [_parser(*one) for one in made]
