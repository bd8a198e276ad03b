"""Secrets out of encoded lines, and hooks that fail closed."""

import json
import time

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessionlog.events.redact import FAILED, SHAPES, apply_hook, find_secrets, may_hold_secret, redact_line

FAST = settings(max_examples=150, deadline=None, derandomize=True)
BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC+/=="
SECRETS = {
    "api key (sk-…)": ["sk-" + "a1B2" * 6, "sk-proj-" + "a_1-" * 10, "sk-ant-api03-" + "x" * 30],
    "GitHub token": ["ghp_" + "a1B2" * 9, "gho_" + "x" * 36, "ghs_" + "x" * 36, "github_pat_" + "a1_B" * 10],
    "GitLab token": ["glpat-" + "a1-B" * 6],
    "AWS access key": ["AKIA" + "A1B2" * 4, "ASIA" + "A1B2" * 4],
    "Google API key": ["AIza" + "a1-B_" * 7],
    "Slack token": ["xoxb-123456789012-abcdef", "xoxp-1234567890"],
    "Hugging Face token": ["hf_" + "a1B" * 11],
    "npm token": ["npm_" + "a1B2" * 9],
    "JSON web token": ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4f"],
    "bearer token": ["Bearer " + "a1.B-2~" * 5, "bearer " + "x" * 20 + "=="],
    "private key": [
        f"-----BEGIN PRIVATE KEY-----\n{BODY}\n{BODY}\n-----END PRIVATE KEY-----",
        f"-----BEGIN RSA PRIVATE KEY-----\r\n{BODY}\r\n-----END RSA PRIVATE KEY-----",
        f"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A\n\n{BODY}\n-----END RSA PRIVATE KEY-----",
        f"-----BEGIN OPENSSH PRIVATE KEY-----\n{BODY}",
    ],
}
ALL = [(name, secret) for name, secrets in SECRETS.items() for secret in secrets]
IDS = [f"{name.split(' (')[0]}-{len(secret)}" for name, secret in ALL]
SURROUNDINGS = {
    "alone": "{}",
    "in a sentence": "the key is {}, keep it",
    "after an assignment": "KEY={}",
    "in quotes": "'{}'",
    "at the start of a line": "one\n{}\nthree",
    "after a tab": "one\t{}",
    "after a carriage return": "one\r\n{}",
    "after a colour": "\x1b[31m{}\x1b[0m",
    "highlighted by grep": "\x1b[01;31m\x1b[K{}\x1b[m\x1b[K",
    "after an escape": "\x1b{}",
    "after an accent": "clé é{}",
    "in a URL": "https://user:{}@host/",
}


def secret_part(secret):
    """The part of a secret that must not survive: for a key its body."""
    return BODY[:20] if "PRIVATE KEY" in secret else secret.split(" ")[-1][:14]


def redacted(value):
    line = orjson.dumps(value)
    clean = redact_line(line)
    orjson.loads(clean)
    return clean.decode()


def test_there_is_an_example_of_every_shape():
    """The table above is whole."""
    assert set(SECRETS) == set(SHAPES)


@pytest.mark.parametrize(("name", "secret"), ALL, ids=IDS)
@pytest.mark.parametrize("surrounding", SURROUNDINGS.values(), ids=SURROUNDINGS.keys())
def test_every_shape_is_removed(name, secret, surrounding):
    """Wherever it stands in a string, the secret is gone and its surroundings are whole."""
    text = surrounding.format(secret)
    clean = redacted({"data": text})
    assert secret_part(secret) not in clean
    found = json.loads(clean)["data"]
    assert "[redacted]" in found
    if "PRIVATE" not in secret:
        assert found == surrounding.format("[redacted]")


@pytest.mark.parametrize(("name", "secret"), ALL, ids=IDS)
def test_every_shape_is_removed_at_any_depth(name, secret):
    """In keys, in lists, deep down, and in JSON inside of text inside of JSON."""
    for value in (
        {secret: 1},
        {"a": [{"b": [[secret]]}]},
        [secret, secret],
        {"arguments": json.dumps({"key": secret})},
        {"arguments": json.dumps({"nested": json.dumps({"key": "first\n" + secret})})},
    ):
        clean = redacted(value)
        assert secret_part(secret) not in clean
        assert "[redacted]" in clean


@pytest.mark.parametrize(("name", "secret"), ALL, ids=IDS)
def test_old_logs_are_searched_by_name(name, secret):
    """find_secrets names the shape and its place, and finds nothing after redaction."""
    line = orjson.dumps({"data": "x\n" + secret})
    assert [found for found, _ in find_secrets(line)] == [name]
    [(_, offset)] = find_secrets(line)
    assert line[offset:].startswith(secret[:4].encode())
    assert list(find_secrets(redact_line(line))) == []


@pytest.mark.parametrize(
    "text",
    [
        "task-12345678901234567890123",
        "risk-aversion-in-a-long-sentence-of-words",
        "disk-usage-report-for-november",
        "sk-short",
        "skin",
        "ghp_short",
        "AKIA2026",
        "xAKIAA1B2A1B2A1B2A1B2",
        "eyJhbGciOi.only-one-dot",
        "bearer of good news",
        "-----BEGIN PUBLIC KEY-----\nabc",
        "a -----BEGIN CERTIFICATE-----",
        "café",
    ],
)
def test_ordinary_text_stays(text):
    """Words that look a little like a secret are not touched."""
    line = orjson.dumps({"data": text})
    assert redact_line(line) == line
    assert list(find_secrets(line)) == []


def test_a_line_without_a_hint_is_the_same_object():
    """Nearly every line costs only the cheap look."""
    line = orjson.dumps({"data": "nothing here"})
    assert may_hold_secret(line) is None
    assert redact_line(line) is line


TEXTS = st.lists(
    st.sampled_from([*(secret for _, secret in ALL), "\n", "\\", '"', "é", " ", "-", "x", "=", "\x1b"]), max_size=8
)


@FAST
@given(parts=TEXTS, key=st.text(max_size=10))
def test_valid_json_stays_valid_json(parts, key):
    """However secrets, quotes, backslashes and control characters are mixed, a line stays one JSON line."""
    text = "".join(parts)
    for value in ({key: text}, {"arguments": json.dumps([text])}):
        line = orjson.dumps(value)
        clean = redact_line(line)
        assert b"\n" not in clean
        assert type(orjson.loads(clean)) is dict
        assert len(clean) <= len(line)


ADVERSARIAL = {
    "one letter": b"a" * 1_000_000,
    "prefixes": b"sk-" * 333_000,
    "halves of a token": b"eyJaaaaaaaaaaa." * 66_000,
    "dots": b".eyJ" * 250_000,
    "underscores": b"ghp_" * 250_000,
    "key headers": b"-----BEGIN " * 90_000,
    "whole key headers": b"-----BEGIN PRIVATE KEY-----" * 37_000,
    "backslashes": b"-----BEGIN PRIVATE KEY-----" + b"\\" * 1_000_000,
    "backslashes in a key": b"-----BEGIN PRIVATE KEY-----" + (b"\\" * 16 + b"n") * 58_000,
    "dashes in a key": b"-----BEGIN PRIVATE KEY-----" + b"-" * 1_000_000,
    "bearers": b"bearer " * 140_000,
    "spaces": b"-----BEGIN" + b" " * 1_000_000,
}


@pytest.mark.parametrize("text", ADVERSARIAL.values(), ids=ADVERSARIAL.keys())
def test_a_megabyte_of_adversarial_text_costs_milliseconds(text):
    """The search is linear: the bound is generous, and a quadratic search would take hours."""
    started = time.perf_counter()
    redact_line(text)
    list(find_secrets(text))
    assert time.perf_counter() - started < 5


def test_a_hook_gets_every_string():
    """Keys and values at any depth; everything else stays as it is."""
    value = {"a": ["b", {"c": "d"}], "n": 5, "none": None, "t": True}
    assert apply_hook(str.upper, value) == {"A": ["B", {"C": "D"}], "N": 5, "NONE": None, "T": True}


@pytest.mark.parametrize("answer", [None, 5, b"bytes", ["x"]], ids=repr)
def test_a_hook_that_returns_rubbish_fails_closed(answer):
    """What is not a string cannot be trusted to be clean."""
    assert apply_hook(lambda text: answer, {"a": "secret"}) == {FAILED: FAILED}


def test_a_hook_that_raises_fails_closed():
    """The text on which it failed is gone, the rest stays."""

    def hook(text):
        if text == "secret":
            raise RuntimeError(text)
        return text

    assert apply_hook(hook, {"a": ["secret", "open"]}) == {"a": [FAILED, "open"]}


def test_a_hook_may_stop_the_program():
    """Only errors are caught: an interrupt goes through."""

    def hook(text):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        apply_hook(hook, "text")
