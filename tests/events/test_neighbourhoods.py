"""A secret is found whatever is written around it: every sample of every rule in every neighbourhood and encoding."""

import json

import orjson
import pytest

from sessionlog.events.redact import redact_line
from sessionlog.events.secrets import find_spans, may_hold_secret
from sessionlog.events.secrets.rules import NAMED, RULES
from sessionlog.testing import MemorySink

NEIGHBOURHOODS = {
    "nothing": "{}",
    "words": "the key {} is here",
    "the end of a sentence": "it is {}.",
    "double quotes": 'a "{}" b',
    "single quotes": "a '{}' b",
    "backticks": "a `{}` b",
    "parentheses": "({})",
    "brackets": "[{}]",
    "braces": "{{{}}}",
    "angles": "<{}>",
    "stars": "**{}**",
    "commas": "a,{},b",
    "semicolons": "a;{};b",
    "an equals sign": "x={}",
    "a colon": "x:{}",
    "lines": "one\n{}\nthree",
    "lines of Windows": "one\r\n{}\r\nthree",
    "tabs": "one\t{}\tthree",
    "an indented line": "one\n    {}\n",
    "a line added in a diff": "\n+{}\n",
    "a line removed in a diff": "\n-{}\n",
    "a colour": "\x1b[31m{}\x1b[0m",
    "a bold colour": "\x1b[01;31m{}\x1b[m",
    "a match of grep": "\x1b[01;31m\x1b[K{}\x1b[m\x1b[K",
    "one of 256 colours": "\x1b[38;5;196m{}\x1b[0m",
    "one of all colours": "\x1b[38;2;255;100;0m{}\x1b[0m",
    "a wavy line": "\x1b[4:3m{}\x1b[0m",
    "the end of a colour": "\x1b[m{}",
    "a cleared line": "\x1b[2K\x1b[1G{}",
    "a cleared screen": "\x1b[2J\x1b[H{}",
    "a screen cleared from here on": "\x1b[J{}",
    "the line before": "\x1b[A\x1b[G{}",
    "two lines before": "\x1b[2A{}",
    "a part of the screen that scrolls": "\x1b[1;24r{}",
    "a place to come back to": "\x1b[s{}",
    "a cursor shown again": "\x1b[?25h{}",
    "a link of a terminal": "\x1b]8;;https://example.org\x07{}\x1b]8;;\x07",
    "a link of a terminal, ended by a backslash": "\x1b]8;;https://example.org\x1b\\{}\x1b]8;;\x1b\\",
    "a colour without its escape": "[31m{}",
    "a colour in a program": "\\x1b[31m{}\\x1b[0m",
    "a colour in a shell script": "\\033[1;31m{}\\e[0m",
    "an escape": "\x1b{}",
    "a newline in a program": "one\\n{}\\n",
    "a tab in a program": "one\\t{}\\t",
    "a zero in a program": "one\\0{}\\0",
    "a quote of a page's program": "\\x22{}\\x22",
    "an emoji in a program": "\\U0001f511{}",
    "a folder of Windows": "C:\\{}",
    "a bell": "\x07{}\x07",
    "a form feed": "\f{}\f",
    "a backspace": "\b{}\b",
    "a zero byte": "\x00{}\x00",
    "a URL's query": "https://example.org/?a={}&b=1",
    "a URL's path": "https://example.org/{}",
    "the middle of a URL's path": "https://example.org/{}/z",
    "a URL in a URL": "https%3A%2F%2Fexample.org%3Fa%3D{}%26b",
    "a URL in a URL in a URL": "https%253A%252F%252Fexample.org%253Fa%253D{}%2526b",
    "per cent": "100%{}",
    "an emoji": "🔑{}🔑",
    "an accent": "é{}é",
    "a blank that does not break": "\xa0{}\xa0",
    "the start": "{} and more",
    "the end": "it is {}",
}
ENCODINGS = {
    "as it is": str.encode,
    "JSON": lambda text: orjson.dumps({"data": text}),
    "JSON in ASCII": lambda text: json.dumps({"data": text}).encode(),
    "a key of JSON": lambda text: orjson.dumps({text: 1}),
    "JSON in JSON": lambda text: orjson.dumps({"arguments": json.dumps({"k": text})}),
    "JSON in JSON in JSON": lambda text: orjson.dumps({"arguments": json.dumps({"k": json.dumps([text])})}),
}
NO_SECRETS = {("key-by-name", "SOME_KEY=", "the middle of a URL's path")}
"""A value of any name that ends in key, before a slash: a path."""


@pytest.mark.parametrize("encoding", ENCODINGS.values(), ids=ENCODINGS.keys())
@pytest.mark.parametrize(("name", "frame"), NEIGHBOURHOODS.items(), ids=NEIGHBOURHOODS.keys())
def test_p17_every_sample_is_found_in_every_neighbourhood(name, frame, encoding):
    """By its own rule; what is left is JSON if it was, and holds no secret."""
    for rule, text in [(one.id, text) for one in (*RULES, *NAMED) for text in one.positive]:
        if (rule, text[:9], name) in NO_SECRETS:
            continue
        line = encoding(frame.format(text))
        assert may_hold_secret(line), (rule, line)
        assert rule in [found for _, _, found in find_spans(line)], line
        clean = redact_line(line)
        assert find_spans(clean) == [], (rule, line)
        if encoding is not str.encode:
            orjson.loads(clean)


@pytest.mark.parametrize("frame", NEIGHBOURHOODS.values(), ids=NEIGHBOURHOODS.keys())
def test_p17_what_only_resembles_a_secret_stays_in_every_neighbourhood(frame):
    """Nothing in front of a word makes it a secret."""
    before, _, _ = frame.partition("{}")
    lines = [orjson.dumps({"data": before + text}) for rule in (*RULES, *NAMED) for text in rule.negative]
    assert [line for line in lines if find_spans(line)] == []


@pytest.mark.parametrize("code", ["\x1b[31m", "\x1b[1;38;5;9m", "\x1b[4:3m", "\x1b[K", "\x1b[?25h"])
@pytest.mark.parametrize("size", [1, 4, 16])
def test_p17_a_token_behind_a_colour_is_taken_out_of_every_delta(code, size):
    """The code is no part of the token's first word."""
    sink = MemorySink(work_dir="/w")
    text = f"the key is {code}{'ghp_' + 'a1B2' * 9}\x1b[0m, keep it."
    for start in range(0, len(text), size):
        sink.emit("llm.delta", {"content": text[start : start + size]})
    written = "".join(event.data["content"] for event in sink.events if event.type == "llm.delta")
    assert "a1" not in written
    assert written.endswith("\x1b[0m, keep it.")
