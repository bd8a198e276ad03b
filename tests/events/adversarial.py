"""Texts that are made to cost a search for secrets as much as possible.

Each is what one stage of the search must look at closely and then let go: beginnings of tokens that are no tokens, in
front of every byte that begins another way of looking; runs of every class of bytes; names with values that fail at
their end; keys without a body; the same inside of JSON in JSON and of URLs; and text that is nothing but secrets. The
letters are drawn anew for each word (from a fixed seed), so that nothing that is remembered helps.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from urllib.parse import quote

from sessionlog.events.secrets.rules import NAMED, NAMES, RULES

LETTERS = "abcdefghijklmnopqrstuvwxyz"
MIXED = LETTERS + LETTERS.upper() + "0123456789"
SEPARATORS = (" ", '"', "=", "/", ".", ":", "\\n", "%3D", "  ", '":"', "\\u001b[31m", "+", "\\\\\\n")
RUNS = (
    "a",
    "Z",
    "7",
    "_",
    "-",
    "/",
    "+",
    ".",
    "=",
    "%",
    "\\",
    '"',
    " ",
    ":",
    "@",
    "\n",
    "\\n",
    "a1",
    "aB3",
    "A-",
    "a.",
    "é",
)
ENDS = ("(", "[", "{", "$", "/", ".", "@", '"', "\\")
AFTER = ("=", ": ", '":"', "%3D", "\\u003d", "']='", " => ")
Texts = dict[str, bytes]
_DRAWN = 1 << 13


def adversarial(size: int) -> Texts:
    """Return the texts by name, each of about `size` bytes."""
    return dict(_texts(size))


def _filled(unit: bytes, size: int) -> bytes:
    return unit * (size // len(unit))


def _texts(size: int) -> Iterator[tuple[str, bytes]]:
    rng = random.Random(13)
    draw = _words(rng)
    yield from _near_misses(draw, size)
    yield from _classes(draw, size)
    yield from _named(draw, size)
    yield from _keys(draw, size)
    yield from _layers(draw, size)
    yield from _first_ones(size)
    samples = [text for rule in (*RULES, *NAMED) for text in rule.positive]
    yield "nothing but secrets", _joined(lambda: rng.choice(samples) + rng.choice((" ", "\\n", '"')), size)
    yield "short secrets", _joined(lambda: "xoxb-" + "".join(rng.choices("0123456789", k=10)) + " ", size)


def _first_ones(size: int) -> Iterator[tuple[str, bytes]]:
    """The texts with which the search was attacked first."""
    heads = [head.encode() for rule in RULES for head in rule.prefixes]
    header = b"-----BEGIN PRIVATE KEY-----"
    for unit in (
        b"a",
        b"sk-",
        b"eyJaaaaaaaaaaaaaaaaaa.",
        b".eyJ",
        b"ghp_",
        b"aaaaaaaaaaaaaaaa ",
        b"-----BEGIN ",
        header,
    ):
        yield f"first: {unit.decode()}", _filled(unit, size)
    for unit in (b"ghp_aaaaaaaaaaaaaaa\\n", b"aaa-aaa-aaa-aaa-aaaaaaa1 ", b"bearer ", b"api_key=", b"password="):
        yield f"first: {unit.decode()}", _filled(unit, size)
    for unit in (b'token""""""', b"://a:bbb@", b"a."):
        yield f"first: {unit.decode()}", _filled(unit, size)
    for unit in (b"\\", b"\\" * 16 + b"n", b"-", b"a-", b"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEA+/b\\n"):
        yield f"first: a key of {unit.decode()}", header + _filled(unit, size)
    yield "first: encoded URLs", _filled(b"%3A%2F%2Fa%3A", size) + b"%40"
    yield "first: spaces", b"-----BEGIN" + b" " * size
    yield "first: every prefix", _filled(b" ".join(heads) + b" ", max(size, 4000))
    yield (
        "first: every prefix of a word",
        _filled(b" ".join(head + b"aaaaaaaaaaaa" for head in heads) + b" ", max(size, 8000)),
    )


def _words(rng: random.Random) -> Callable[[int, str], str]:
    return lambda length, letters=MIXED: "".join(rng.choices(letters, k=length))


def _joined(make: Callable[[], str], size: int) -> bytes:
    """A text of different words: some thousand bytes of them, repeated."""
    pieces: list[str] = []
    length = 0
    while length < min(size, _DRAWN):
        pieces.append(make())
        length += len(pieces[-1])
    return _filled("".join(pieces).encode(), size) if size > length else "".join(pieces).encode()


def _near_misses(draw: Callable[..., str], size: int) -> Iterator[tuple[str, bytes]]:
    """What begins as a token of each rule does, and has no more than that."""
    for rule in RULES:
        beginnings = [*rule.prefixes, *rule.preceded_by, *filter(None, [rule.far.decode()])]
        if beginnings:
            some = beginnings[:4]
            turn = iter(range(1 << 30))
            yield (
                f"beginnings of {rule.id}",
                _joined(lambda some=some, turn=turn: some[next(turn) % len(some)] + draw(16, LETTERS) + " ", size),
            )
    heads = [head for rule in RULES for head in (*rule.prefixes, *rule.preceded_by)]
    for separator in SEPARATORS:
        turn = iter(range(1 << 30))
        yield (
            f"every beginning after {separator!r}",
            _joined(lambda s=separator, turn=turn: s + heads[next(turn) % len(heads)] + draw(14, LETTERS), size),
        )
    yield (
        "every beginning behind a dash",
        _joined(lambda: f"a-{heads[len(draw(1)) % len(heads)]}{draw(12, LETTERS)}", size),
    )
    yield "beginnings that end a line", _joined(lambda: f"x ghp_{draw(5)}\\n{draw(16)}", size)


def _classes(draw: Callable[..., str], size: int) -> Iterator[tuple[str, bytes]]:
    """Runs of one class, and words of several lengths after every separator."""
    for run in RUNS:
        yield f"only {run!r}", _filled(run.encode(), size)
        yield f"a key block of {run!r}", b"-----BEGIN PRIVATE KEY-----" + _filled(run.encode(), size)
        yield f"a password of {run!r}", b"password=" + _filled(run.encode(), size) + b"("
    for length in (15, 16, 20, 33):
        for separator in SEPARATORS:
            yield (
                f"{length} letters and digits after {separator!r}",
                _joined(lambda n=length, s=separator: s + draw(n), size),
            )
    yield "dashes and digits", _joined(lambda: f"{draw(3)}-{draw(3)}-{draw(3)}-{draw(3)}-{draw(8)} ", size)
    yield "dashes and keywords", _joined(lambda: f"api-key-{draw(8, LETTERS)}-{draw(20, LETTERS)} ", size)
    yield (
        "UUIDs",
        _joined(
            lambda: (
                f"{draw(8, 'abc123')}-{draw(4, 'abc123')}-{draw(4, 'abc123')}-{draw(4, 'abc123')}-{draw(12, 'abc123')} "
            ),
            size,
        ),
    )


def _named(draw: Callable[..., str], size: int) -> Iterator[tuple[str, bytes]]:
    """Names of secrets with values that are none, or that fail only at their end."""
    names = [name.decode() for name in NAMES] + ["secret", "authorization", "bearer", "private"]
    for after in AFTER:
        turn = iter(range(1 << 30))
        yield (
            f"names before {after!r}",
            _joined(lambda a=after, turn=turn: f"{names[next(turn) % len(names)]}{a}", size),
        )
        yield (
            f"names and words before {after!r}",
            _joined(lambda a=after, turn=turn: f" {names[next(turn) % len(names)]}{a}{draw(16, LETTERS)}1", size),
        )
    for end in ENDS:
        for name in ("api_key=", "some_key: ", "password=", "secret=", "token%3D", "authorization: basic ", "://a:"):
            yield f"{name} to {end!r}", name.encode() + _filled(b"aB1", size) + end.encode()
    yield "names in one word", _filled(b"token%3Daaaaaaaaaaaaaaa1", size) + b"("
    yield "logins", _joined(lambda: f"://{draw(2)}:{draw(4)}@", size)
    yield "logins without an end", _joined(lambda: f"://{draw(2)}:{draw(150)}%{draw(3)}", size) + b"@"
    yield "encoded logins", _joined(lambda: f"%3A%2F%2F{draw(2)}%3A{draw(4)}", size) + b"%40"
    yield "bearers", _joined(lambda: f"bearer {draw(15)} ", size)


def _keys(draw: Callable[..., str], size: int) -> Iterator[tuple[str, bytes]]:
    """Frames of keys with bodies of every shortness, and walls of base64."""
    head, end = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"
    for length in (0, 1, 4, 5, 8, 16, 64):
        yield f"keys of {length} letters", _joined(lambda n=length: head + draw(n), size)
        yield (
            f"keys of {length} letters and an end",
            _joined(lambda n=length: head + "\\n" + draw(n) + "\\n" + end, size),
        )
    for line_end in ("\n", "\\n", "\\\\n", "\r\n", "%0A"):
        yield (
            f"a certificate wrapped by {line_end!r}",
            b"-----BEGIN CERTIFICATE-----" + _joined(lambda e=line_end: draw(64, MIXED + "+/") + e, size),
        )
        yield f"base64 wrapped by {line_end!r}", _joined(lambda e=line_end: draw(76, MIXED + "+/") + e, size)
    yield "base64 without an end", _joined(lambda: draw(64, MIXED + "+/"), size)
    yield "begins", _filled(b"begin ", size) + b"private key-----"
    yield "PuTTY", _joined(lambda: f"private-lines: 1\\n{draw(6)}\\n", size)
    yield "tokens that go on", b"ghp_" + b"a1B2" * 10 + _joined(lambda: "\\n" + draw(10), size)
    yield "JSON web tokens cut short", _joined(lambda: f"eyJ{draw(16)}.{draw(15)}.{draw(5)}.", size)


def _layers(draw: Callable[..., str], size: int) -> Iterator[tuple[str, bytes]]:
    """JSON in JSON and URLs in URLs: each layer escapes what the one within has escaped."""

    def near() -> dict[str, str]:
        return {"api_key": draw(15, LETTERS), "text": f"x\n ghp_{draw(13)}\n\ttoken={draw(14)}", "password": "$NAME"}

    for depth in range(1, 5):

        def nested(depth: int = depth) -> str:
            text = json.dumps(near())
            for _ in range(depth):
                text = json.dumps({"d": text})
            return text

        def encoded(depth: int = depth) -> str:
            text = "&".join(f"{name}={value}" for name, value in near().items())
            for _ in range(depth):
                text = quote(text, safe="")
            return text + "&"

        yield f"JSON in {depth} layers", _joined(nested, size)
        yield f"URLs in {depth} layers", _joined(encoded, size)
