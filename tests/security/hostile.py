"""Hostile logs, generated: name → bytes. Whoever writes them wants to own the terminal, the table, or the process.

`LOGS` are quick to read; `HEAVY` are large once unpacked, and tests read them less often. Every field of every payload
gets its turn, because the fields are taken from the payload classes themselves.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from functools import cache
from typing import Any

from sessionlog.events.payloads import PAYLOADS
from tests.security.fragments import MARKUP, TERMINAL

TS = "2026-11-20T10:00:{:02d}.000000Z"
AT = TS.format(0)
EVIL = "\x1b]0;owned\x07\x1b[2J\u202e[/nope]=1|<b>\x9b\x00"
"""A little of everything, for places that hold one text."""

Logs = Mapping[str, bytes]


def line(type_: Any, data: Any, *, seq: Any = 0, ts: Any = AT, session_id: Any = "s-1", **extra: Any) -> bytes:
    """One event; characters that UTF-8 cannot hold are left as JSON escapes."""
    event = {"session_id": session_id, "seq": seq, "type": type_, "ts": ts, "data": data, **extra}
    return dumps(event) + b"\n"


def dumps(value: Any) -> bytes:
    """JSON with raw UTF-8 where there is one."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(value).encode()


def session(
    *, start: Any = None, request: Any = None, response: Any = None, tool: Any = None, end: Any = None, **envelope: Any
) -> bytes:
    """A small whole session in which single fields are replaced."""
    events: tuple[tuple[str, dict[str, Any], Any], ...] = (
        ("session.start", {"v": 1, "provider": "openai", "model": "gpt-5.3-codex", "prompt": "hello"}, start),
        ("llm.request", {"messages": [{"role": "user", "content": "hello"}], "model": "gpt-5.3-codex"}, request),
        ("llm.response", {"content": "hi", "usage": {"input": 10, "output": 5}, "latency_ms": 12.5}, response),
        ("tool.call", {"tool": "read", "input": {"path": "a"}, "output": "b", "duration_ms": 3}, tool),
        ("session.end", {"status": "success", "duration_ms": 900, "tokens": {"input": 10, "output": 5}}, end),
    )
    return b"".join(
        line(
            type_,
            {**data, **changed} if isinstance(changed, dict) else data,
            **{"seq": seq, "ts": TS.format(seq), **envelope},
        )
        for seq, (type_, data, changed) in enumerate(events)
    )


def everywhere(value: Any, *, key: str = "x") -> bytes:
    """A session in which every known field of every payload holds `value`, or a list or table of it."""
    out = [session(start={"prompt": value, "work_dir": value, "provider": value, "model": value})]
    for shape in (value, [value, {key: value}], {key: value, "role": value, "content": value}):
        for seq, (type_, payload) in enumerate(PAYLOADS.items()):
            data = {field.name: shape for field in fields(payload) if field.name != "extra"}
            out.append(line(type_, data, seq=seq, session_id=value, **{key: value}))
    message = {"role": "user", "content": value, "name": value, "tool_calls": [{"function": {"name": value}}]}
    pin = {"harness": value, "provider": value, "model": value}
    more: tuple[tuple[str, dict[str, Any]], ...] = (
        ("llm.request", {"messages": [message, {"role": value, "content": [{"type": "text", "text": value}]}]}),
        ("llm.response", {"content": value, "model": value, "attempt": {"provider_system": value, "response_model": value}}),
        ("llm.response", {"error": value, "latency_ms": 5}),
        ("override", {"user_pin": pin, "auto_decision": pin, "axes_overridden": [value], "match_per_axis": {value: False}}
            if isinstance(value, str) else {"user_pin": pin}),
        ("rejected_override", {"user_pin": pin, "rejection_error": value, "prompt_features": pin}),
        ("session.end", {"status": value, "error": value, "output": value, "metadata": {key: value}}),
    )  # fmt: skip
    return b"".join([*out, *(line(type_, data, seq=90) for type_, data in more)])


def _texts() -> Iterator[tuple[str, bytes]]:
    """Each fragment in every text and as a type, and all of them unescaped where JSON should be."""
    raw = b""
    for name, text in {**TERMINAL, **MARKUP}.items():
        yield f"text-{name}", everywhere(text, key=text) + line(text, {text: text}, seq=99)
        piece = text.encode("utf-8", "surrogatepass")
        raw += piece + b"\n" + b'{"type":"' + piece + b'","data":{"prompt":"' + piece + b'"}}\n'
    yield "unescaped", session() + raw


def _shapes() -> Iterator[tuple[str, bytes]]:
    """The wrong kind of value in every field, and payloads that are no tables."""
    values: dict[str, Any] = {
        "number": 7, "negative": -7, "float": 1.5, "huge": 10**400, "string": "x", "empty": "", "true": True,
        "null": None, "list": [], "table": {}, "lists": [[["x", None, 7]]], "tables": {"a": {"b": {"c": None}}},
    }  # fmt: skip
    for name, value in values.items():
        yield f"every-field-{name}", everywhere(value)
        yield f"every-data-{name}", b"".join(line(type_, value, seq=i) for i, type_ in enumerate(PAYLOADS))
    yield "no-data", b"".join(b'{"type":"%b"}\n' % type_.encode() for type_ in PAYLOADS)


def _numbers() -> Iterator[tuple[str, bytes]]:
    """Counts, costs, durations and times that are none."""
    numbers = {
        "negative": "-5", "negative-zero": "-0.0", "fraction": "1.5", "integral-float": "3.0", "exponent": "1e308",
        "infinite": "1e400", "nan": "NaN", "infinity": "-Infinity", "over-64-bit": str(2**64), "int64-min": str(-(2**63)),
        "over-53-bit": str(2**53), "int64-max": str(2**63 - 1), "digits-400": "9" * 400, "digits-5000": "9" * 5000,
        "true": "true", "string": '"12"', "string-huge": '"1e999999999"', "list": "[1]", "table": '{"a":1}',
        "arabic-digits": '"٣"', "tiny": "1e-320",
    }  # fmt: skip
    keys = ("input", "output", "cache_read", "cache_write", "cache_write_1h", "reasoning", "total")
    keys_of_amounts = ("cost_usd", "latency_ms", "duration_ms", "seq", "auto_score", "failover_count", "round")
    for name, text in numbers.items():
        tokens = "{" + ",".join(f'"{key}":{text}' for key in keys) + "}"
        fields_ = {"usage": tokens, "tokens": tokens, **dict.fromkeys(keys_of_amounts, text)}
        fill = ",".join(f'"{key}":{value}' for key, value in fields_.items())
        body = b"".join(
            b'{"session_id":"s-1","seq":%b,"type":"%b","ts":"%b","data":{"v":1,"model":"m","provider":"p",%b}}\n'
            % (text.encode(), type_.encode(), TS.format(n).encode(), fill.encode())
            for n, type_ in enumerate(PAYLOADS)
        )
        yield f"number-{name}", body * 3


def _times() -> Iterator[tuple[str, bytes]]:
    times = {
        "year-0": "0000-01-01T00:00:00Z", "year-1": "0001-01-01T00:00:00Z", "year-9999": "9999-12-31T23:59:59.999999Z",
        "year-10000": "10000-01-01T00:00:00Z", "before-1970": "1901-02-03T04:05:06Z", "leap": "2016-12-31T23:59:60Z",
        "garbage": "yesterday", "escape": EVIL, "zone": "2026-11-20T10:00:00+99:99", "edge": "0001-01-01T00:00:00+23:59",
        "late-edge": "9999-12-31T23:59:59-23:59", "digits": "2026-11-20T10:00:00." + "9" * 5000 + "Z",
        "number": 1763632800, "float": 1763632800.5, "null": None, "list": ["2026"], "empty": "", "spaces": " " * 99,
        "arabic": "٢٠٢٦-١١-٢٠T١٠:٠٠:٠٠Z", "far": "2262-04-12T00:00:00Z", "minus": "-2026-11-20T10:00:00Z",
    }  # fmt: skip
    for name, ts in times.items():
        yield f"ts-{name}", session(ts=ts)
    mixed = [times["year-1"], TS.format(1), times["year-9999"], TS.format(0), "2026-11-20T10:00:00Z"]
    yield (
        "ts-jumps",
        b"".join(line("llm.response", {"usage": {"input": 1}}, seq=n, ts=ts) for n, ts in enumerate(mixed)),
    )


def _names() -> Iterator[tuple[str, bytes]]:
    """Names that end up in keys of reports, in file names and in queries."""
    names = {
        "escape": EVIL, "traversal": "../../../tmp/owned", "long": "x" * 100_000, "sql": "'); DROP TABLE records; --",
        "glob": "[*?]", "json-path": "$.a[0]", "regex": "(a+)+$" + "a" * 5000 + "!", "dollar": "{0}%s{x}",
        "slashes": "/" * 500, "colons": ":" * 500, "newline": "a\nb", "spaces": "   ", "nul": "a\x00b",
    }  # fmt: skip
    for name, text in names.items():
        named = {
            "provider": text,
            "model": text,
            "work_dir": f"/{text}",
            "selected_route": text,
            "resolved_harness": text,
        }
        attempt = {"provider_system": text, "requested_model": text, "response_model": text}
        yield f"name-{name}", session(start=named, response={"attempt": attempt, "model": text}, session_id=text)
    for name, metadata in {
        "keys": {EVIL: EVIL, "": "", "a.b": 1, "team'--": 2, "\n": "\n"}, "values": {"team": {"a": [EVIL, None, 10**30]}},
        "many": {f"key{n}": n for n in range(10_000)}, "list": [EVIL], "text": EVIL, "long": {"team": "x" * 10**6},
    }.items():  # fmt: skip
        yield f"metadata-{name}", session(start={"metadata": metadata}, end={"metadata": metadata})
    deep = b'{"a":' * 500 + b"1" + b"}" * 500
    yield "metadata-deep", session(start={"metadata": "deep"}).replace(b'"deep"', deep)


@cache
def logs() -> Logs:
    """The quick ones."""
    makers: tuple[Callable[[], Iterator[tuple[str, bytes]]], ...] = (_texts, _shapes, _numbers, _times, _names)
    return {name: content for make in makers for name, content in make()}
