"""The list of prices as data: what cannot be read is refused by name."""

import json

import pytest

from sessionlog.errors import InvalidPrices
from sessionlog.pricing.price_list import parse_price_list

LIST = {"source": "s", "retrieved_at": "2026-01-31", "providers": {"p": {"api": "x"}}}
HEAD = json.dumps(LIST).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[]",
        b'{"source": "s"',
        json.dumps(LIST | {"providers": []}).encode(),
        json.dumps(LIST | {"providers": {"p": "x"}}).encode() + b"\n[]",
        b'{"source": "s", "retrieved_at": "\xff", "providers": {}}',
        HEAD,
        HEAD + b"\n[]\n[]",
    ],
)
def test_a_damaged_list_is_refused_by_name(content):
    """An installation that lost a part of its data says so, instead of a KeyError."""
    with pytest.raises(InvalidPrices, match="price list"):
        parse_price_list(content)


def test_a_list_is_read():
    """Models are parsed when they are asked for, and refused by name then."""
    read = parse_price_list(HEAD + b"\n[]")
    assert (read.source, read.date, read.providers["p"]["models"]) == ("s", "2026-01-31", [])
    with pytest.raises(InvalidPrices, match="price list"):
        parse_price_list(HEAD + b"\n[").providers["p"]["models"]
