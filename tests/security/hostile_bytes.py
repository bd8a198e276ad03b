"""Hostile bytes: logs that are not what their name says, packed ones, large ones, and the names of files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from tests.security.hostile import EVIL, dumps, everywhere, line, session


def encodings() -> Iterator[tuple[str, bytes]]:
    """Bytes that are not lines of UTF-8, or only nearly."""
    good = session()
    yield "empty", b""
    yield "newline", b"\n"
    yield "blank-lines", b"\n \n\t\n\r\n" * 50
    yield "crlf", good.replace(b"\n", b"\r\n")
    yield "cr-only", good.replace(b"\n", b"\r")
    yield "no-newline-at-end", good.rstrip(b"\n")
    yield "bom", b"\xef\xbb\xbf" + good
    yield "boms", b"\xef\xbb\xbf\xef\xbb\xbf" + good.replace(b"\n", b"\n\xef\xbb\xbf")
    yield "utf-16-le", b"\xff\xfe" + good.decode().encode("utf-16-le")
    yield "utf-16-be", b"\xfe\xff" + good.decode().encode("utf-16-be")
    yield "utf-32", good.decode().encode("utf-32")
    yield "utf-7", b"+AHs-" + good
    yield "latin-1", session(start={"prompt": "café"}).replace("é".encode(), b"\xe9")
    yield "overlong-utf8", good.replace(b"hello", b"\xc0\x9b\xe0\x80\x9b\xed\xa0\x80\xf5\x80\x80\x80\xff")
    yield "nul-run", good[:100] + b"\x00" * 70_000 + good
    yield "nul-lines", b"\x00\n" * 2000 + good
    yield "nul-only", b"\x00" * 4096
    yield "html-page", b"<!doctype html><title>404</title>\n" * 20
    yield "binary", bytes(range(256)) * 64


def documents() -> Iterator[tuple[str, bytes]]:
    """Lines that are not one event each, or not JSON."""
    good = session()
    event = line("llm.response", {"usage": {"input": 3}, "content": EVIL}).rstrip(b"\n")
    yield "two-documents-a-line", event + event + b"\n" + event + b" , " + event + b"\n" + good
    yield "fifty-documents-a-line", event * 50 + b"\n"
    yield "thousand-documents-a-line", event * 1000 + b"\n"
    yield "pretty-printed", json.dumps(json.loads(event), indent=4).encode() + b"\n" + good
    yield "pretty-never-ends", b"{\n" * 3000 + good
    yield "torn-then-whole", event[:60] + good
    yield "torn-tail", good + event[:77]
    yield "torn-escape", good + event[: event.index(b"\\u001b") + 3]
    yield (
        "duplicate-keys",
        b'{"type":"x","type":"llm.response","ts":"","ts":"2026-11-20T10:00:00Z","data":1,"data":{"usage":{"input":1,"input":2}}}\n'
        * 3,
    )
    yield "key-case", good.replace(b'"type"', b'"TYPE"').replace(b'"data"', b'"Data"').replace(b'"usage"', b'"USAGE"')
    yield "type-number", line(7, {}) + line(None, {}) + line([], {}) + line({}, {}) + line("", {}) + line(True, {})
    yield "envelope-wrong", line("llm.response", {}, seq=EVIL, ts=7, session_id=["x"]) * 3
    yield "envelope-extra", line("llm.response", {}, **{EVIL: EVIL, "a": None, "raw": "x", "extra": {"extra": 1}})
    values: tuple[Any, ...] = ([], [EVIL], "x", EVIL, 7, 1.5, True, None, [[[]]])
    yield "not-objects", b"".join(dumps(value) + b"\n" for value in values)
    yield "json-array-file", b"[" + good.replace(b"\n", b",\n")[:-2] + b"]"
    yield "deep-1025", _deep(1025)
    yield "deep-2000", _deep(2000)
    yield "deep-objects", b'{"type":"tool.call","data":' + b'{"a":' * 1500 + b"1" + b"}" * 1500 + b"}\n"
    yield "deep-100000-unclosed", b'{"type":"tool.call","data":' + b"[" * 100_000 + b"\n" + good
    yield "brackets", b"[" * 50_000 + b"\n" + b"{" * 50_000 + b"\n" + b'{"' * 20_000 + b"\n" + good
    yield "braces-resync", b'{"session_id":' * 5000 + b"\n" + good
    yield "quotes", b'"' * 50_000 + b"\\" * 50_000 + b"\n" + good
    yield "nan-everywhere", good.replace(b"10", b"NaN").replace(b"12.5", b"-Infinity").replace(b"900", b"Infinity")
    yield "comments", b"// a comment\n/* and */ # another\n" + good.replace(b",", b", /* */")
    yield "single-quotes", good.replace(b'"', b"'")


def sizes() -> Iterator[tuple[str, bytes]]:
    """Events that are well-formed, and too many, too long or too often."""
    good = session()
    yield "keys-100000", line("session.start", {f"k{n}": n for n in range(100_000)}) + good
    yield "messages-5000", session(request={"messages": [{"role": "user", "content": f"m{n}"} for n in range(5000)]})
    yield "types-2000", b"".join(line(f"type.{n}\x1b[2J", {}, seq=n) for n in range(2000))
    yield "starts-and-ends", good * 5 + line("session.end", {"status": EVIL}) + line("session.start", {})
    yield "only-ends", line("session.end", {"status": "success", "tokens": {"input": 5}}) * 4
    yield "long-line", session(tool={"output": EVIL * 20_000})
    yield "wide-word", session(start={"prompt": "x" * 200_000}, end={"error": "y" * 200_000, "status": "z" * 200_000})
    yield "rtl-and-combining", session(response={"content": ("\u0300" * 2000 + "א") * 20})


def _deep(depth: int) -> bytes:
    return (
        b'{"session_id":"s","seq":1,"type":"tool.call","ts":"","data":{"input":'
        + b"[" * depth
        + b"]" * depth
        + b"}}\n"
        + session()
    )


@cache
def byte_logs() -> Mapping[str, bytes]:
    """Name → content of what is quick to read."""
    return {name: content for make in (encodings, documents, sizes) for name, content in make()}


@cache
def packed() -> Mapping[str, bytes]:
    """File name with suffix → bytes of compressed logs, whole and not."""
    good = gzip.compress(session() * 40, mtime=0)
    zst = _zstd(session() * 40)
    return {
        "whole.jsonl.gz": good,
        "two-members.jsonl.gz": good + good,
        "truncated.jsonl.gz": good[: len(good) // 2],
        "header-only.jsonl.gz": good[:8],
        "flipped.jsonl.gz": good[:40] + bytes([good[40] ^ 0xFF]) + good[41:],
        "garbage-after.jsonl.gz": good + EVIL.encode(),
        "zeros-after.jsonl.gz": good + b"\x00" * 4096,
        "not-packed.jsonl.gz": session(),
        "empty.jsonl.gz": b"",
        "packed-but-plain-name.jsonl": good,
        "whole.jsonl.zst": zst,
        "truncated.jsonl.zst": zst[: len(zst) // 2],
        "header-only.jsonl.zst": zst[:5],
        "garbage.jsonl.zst": EVIL.encode() * 20,
        "empty.jsonl.zst": b"",
        "gz-named-zst.jsonl.zst": good,
        "hostile-inside.jsonl.gz": gzip.compress(everywhere(EVIL, key=EVIL), mtime=0),
    }


def _zstd(content: bytes) -> bytes:
    try:
        from compression import zstd
    except ImportError:
        from backports import zstd
    compressed: bytes = zstd.compress(content)
    return compressed


FILE_NAMES: tuple[bytes, ...] = (
    b"\x1b[2J\x1b]0;owned\x07.jsonl",
    b"a\nb.jsonl",
    b"a\rforged.jsonl",
    b"\x07bell.jsonl",
    b"-rf.jsonl",
    b"--help.jsonl",
    b"\xff\xfe invalid.jsonl",
    b"caf\xe9.jsonl",
    "half\ud83d.jsonl".encode("utf-8", "surrogatepass"),
    "c1\x9b2J.jsonl".encode(),
    "user\u202etxt.jsonl".encode(),
    "zero\u200bwidth.jsonl".encode(),
    b"[/nope][link=x].jsonl",
    b":smile:.jsonl",
    b"=cmd|' \xe2\x80\xae'!A0.jsonl",
    b"a|b`c*d.jsonl",
    b"<script>alert(1)<script>.jsonl",
    b"'; DROP TABLE records; --.jsonl",
    b" .jsonl",
    b".jsonl",
    b"x.jsonl.jsonl",
    b"~.jsonl",
    b"$HOME.jsonl",
    b"%s{0}.jsonl",
    b"n" * 240 + b".jsonl",
)
"""Names that Linux allows."""

HEAVY: Mapping[str, Callable[[], bytes]] = {
    "ten-megabytes-a-line.jsonl": lambda: session(tool={"output": "\x1b[2J" + "x" * 10_000_000}),
    "ten-megabytes-of-escapes.jsonl": lambda: session(response={"content": "\x1b]0;" * 1_000_000})[:9_000_000],
    "bomb.jsonl.gz": lambda: gzip.compress(b"\x00" * (80 << 20), 9, mtime=0),
    "bomb-of-lines.jsonl.gz": lambda: gzip.compress(b"\n" * 8_000, 9, mtime=0),
    "bomb.jsonl.zst": lambda: _zstd(b" " * (80 << 20)),
}
"""File name → what makes the bytes of it that are large once read."""
