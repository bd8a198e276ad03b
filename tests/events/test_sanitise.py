"""The bounded copy of any object tree that JSON can hold."""

import enum
import uuid
from collections import OrderedDict, UserDict, deque
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction

import orjson
import pytest

from sessionlog.events.sanitise import MAX_DEPTH, MAX_ITEMS, cut_strings, sanitise, str_of_int


class Colour(enum.Enum):
    """An enumeration of text."""

    RED = "red"


class Level(enum.IntEnum):
    """An enumeration of numbers."""

    HIGH = 3


@dataclass
class Call:
    """A payload of the caller's making."""

    name: str
    args: tuple


class Ratio(float):
    """A float of another make."""


class Silent:
    """An object that will not be spelled."""

    def __repr__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "copy"),
    [
        (Level.HIGH, 3),
        (Ratio(0.5), 0.5),
        (Fraction(1, 4), 0.25),
        (Decimal("0.10"), "0.10"),
        (Colour.RED, "red"),
        (datetime(2026, 11, 21, 10, tzinfo=UTC), "2026-11-21T10:00:00+00:00"),
        (date(2026, 11, 21), "2026-11-21"),
        (uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (Call("ls", ({1},)), {"name": "ls", "args": [[1]]}),
        (UserDict(a=1), {"a": 1}),
        (OrderedDict(a={1}), {"a": [1]}),
        (orjson.Fragment(b'{"a":[1]}'), {"a": [1]}),
        (True, True),
        (int, "<class 'int'>"),
        (deque([1]), "deque([1])"),
        (1 + 2j, "(1+2j)"),
        (Silent(), "[unprintable Silent: RuntimeError]"),
    ],
)
def test_values_keep_their_meaning(value, copy):
    """Numbers stay numbers, what JSON has a spelling for has it, and the rest is spelled as Python does."""
    assert sanitise(value) == copy
    assert type(sanitise(value)) is type(copy)


def test_dates_are_spelled_the_same_beside_a_set():
    """One value that JSON cannot hold does not change how its neighbours are written."""
    moment = datetime(2026, 11, 21, 10, tzinfo=UTC)
    assert sanitise({"at": moment, "s": {1}})["at"] == orjson.loads(orjson.dumps(moment))


def test_a_released_view_is_named():
    """A buffer that is gone costs itself."""
    view = memoryview(b"x")
    view.release()
    assert sanitise([view, 1]) == ["[unreadable memoryview: ValueError]", 1]


def test_depth_is_bounded():
    """What is deeper than the limit is named."""
    tree = []
    for _ in range(MAX_DEPTH + 10):
        tree = [tree]
    text = repr(sanitise(tree))
    assert text.count("[") == MAX_DEPTH + 1
    assert "[too deep]" in text


def test_items_are_bounded():
    """A tree that never ends, ends."""
    copy = sanitise([0] * (MAX_ITEMS + 10))
    assert len(copy) <= MAX_ITEMS + 1
    assert copy[-1] == "[too many items]"


def test_a_spelling_is_bounded():
    """A huge repr is cut."""
    assert len(sanitise(bytes)) < 100
    assert len(sanitise(deque(["x" * 100_000]))) < 10_100


def test_an_integer_too_long_for_decimal_text_is_hexadecimal():
    """Python refuses to spell integers of more than 4300 digits in decimal."""
    assert str_of_int(10**30) == str(10**30)
    assert int(str_of_int(10**5000), 16) == 10**5000


def test_strings_are_cut_at_any_depth():
    """Keys and values, however deep; what is short stays."""
    value = {"a" * 30: ["b" * 30, {"c": "d" * 30}], "n": 5, "short": "s"}
    assert cut_strings(value, 20) == {
        "a" * 20 + "…[10 characters cut]": [
            "b" * 20 + "…[10 characters cut]",
            {"c": "d" * 20 + "…[10 characters cut]"},
        ],
        "n": 5,
        "short": "s",
    }


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({1: "a", "1": "b"}, {"1": "a", "1 (2)": "b"}),
        ({"1 (2)": "a", "1": "b", 1: "c"}, {"1 (2)": "a", "1": "b", "1 (3)": "c"}),
        (
            dict(zip(("\ud800", "\ud801", "\ud802"), (1, 2, 3), strict=True)),
            {"\ufffd": 1, "\ufffd (2)": 2, "\ufffd (3)": 3},
        ),
        ({None: 1, "None": 2}, {"None": 1, "None (2)": 2}),
    ],
)
def test_keys_that_become_equal_stay_apart(given, kept):
    """A number behind the later ones; the values are all there, in their order."""
    assert sanitise(given) == kept


def test_many_keys_that_become_equal_take_linear_time():
    """Numbers are not looked for from the start each time."""

    class Alike:
        def __repr__(self):
            return "alike"

    kept = sanitise({Alike(): n for n in range(50_000)})
    assert len(kept) == 50_000
    assert kept["alike (50000)"] == 49_999


def test_keys_that_are_cut_alike_stay_apart():
    """Cutting strings to a length makes long keys equal."""
    cut = cut_strings({"k" * 30 + "a": 1, "k" * 30 + "b": 2}, 30)
    assert list(cut.values()) == [1, 2]


def test_a_long_spelling_says_what_was_cut():
    """50,000 characters of a repr are shortened to 10,000 and a mark."""

    class Long:
        def __repr__(self):
            return "x" * 50_000

    assert sanitise([Long()]) == ["x" * 10_000 + "…[40000 characters cut]"]


@pytest.mark.parametrize(
    ("fragment", "kept"),
    [(b"not json", "[not JSON] not json"), (b"\xff", "[not JSON] \ufffd"), (b'{"a":1}', {"a": 1}), ("", "[not JSON] ")],
)
def test_a_fragment_that_is_no_json_is_text(fragment, kept):
    """Its bytes would make the whole line unreadable."""
    assert sanitise({"f": orjson.Fragment(fragment)}) == {"f": kept}
