"""P1: emit is given any tree of Python objects. It never raises, and one event is one line that can be read."""

import datetime as dt
import decimal
import enum
import json
import os
import pathlib
import uuid

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.events.envelope import Event
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.reader.stream import read_events
from tests.profiles import examples


class Colour(enum.Enum):
    """A value that no JSON has."""

    RED = object()


class Raising:
    """Whatever is asked of it, it raises."""

    def __init__(self, error):
        self._error = error

    def __getattribute__(self, name):
        raise object.__getattribute__(self, "_error")

    def __repr__(self):
        raise object.__getattribute__(self, "_error")

    __str__ = __iter__ = __len__ = __hash__ = __bool__ = __eq__ = __dict__ = __class__ = __repr__


class OddText(str):
    """A text whose methods lie."""

    __slots__ = ()

    def encode(self, *_):
        raise ValueError("no")

    def __str__(self):
        return 7  # noqa: PLE0307 - that is the point


class OddMapping(dict):
    """A dict that raises while it is walked."""

    def items(self):
        raise RuntimeError("no items")

    keys = values = __iter__ = items


def endless():
    """A generator without an end."""
    while True:
        yield 1


def deep(depth):
    """Lists in lists."""
    value = []
    for _ in range(depth):
        value = [value]
    return value


def circular():
    """A list that holds itself."""
    value = [1]
    value.append({"again": value})
    return value


RAISED = st.sampled_from(
    (ValueError("x"), RecursionError("x"), MemoryError(), AttributeError("x"), UnicodeError("x"), Exception())
)
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**400), 10**400), st.floats(), st.text(), st.binary(max_size=20),
    st.text(st.characters(categories=("Cs", "Cc", "Cf")), max_size=5), st.complex_numbers(), st.decimals(), st.dates(),
    st.datetimes(timezones=st.none() | st.just(dt.UTC)), st.uuids(), st.builds(Raising, RAISED),
    st.sampled_from((b'{"a":1}', b"not json", b'1}\n{"forged":1', b"\xff", b"")).map(orjson.Fragment),
    st.sampled_from((
        Colour.RED, OddText("odd"), object(), print, type, ..., NotImplemented, pathlib.Path("/x\n"), uuid.UUID(int=1),
        decimal.Decimal("NaN"), range(10**9), memoryview(b"x"), "\ud800", "a\nb", "\u2028", "x" * 70_000, 2**64, -(2**63) - 1,
    )),
    st.sampled_from((endless, circular, lambda: deep(300), lambda: deep(5000))).map(lambda make: make()),
)  # fmt: skip
TREES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(max_size=4) | st.integers() | st.none() | st.tuples(st.integers()) | st.booleans(),
            inner,
            max_size=4,
        )
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=4), inner, max_size=3).map(OddMapping)
        | st.frozensets(st.integers(), max_size=3)
    ),
    max_leaves=8,
)


@pytest.fixture(scope="module", params=["os", "redacted", "hook"])
def log(request, tmp_path_factory):
    """A logger that every example uses."""
    redact = {"os": False, "redacted": True, "hook": lambda text: text[::-1]}[request.param]
    with SessionLogger(
        tmp_path_factory.mktemp("log"), "s", work_dir="/w", redact=redact, notify=lambda text: None
    ) as log:
        yield log


@examples(70)  # for each of the three loggers
@given(data=TREES, type_=st.text(max_size=8) | LEAVES)
def test_p01_any_object_is_one_line_or_is_counted(log, data, type_):
    """What cannot be stored is described; what is written is one event more, and nothing but that."""
    before = os.path.getsize(log.path) if os.path.exists(log.path) else 0
    health = log.health()
    recorded = log.emit(type_, data)
    after = log.health()
    assert after.emitted == health.emitted + 1
    assert after.written + after.dropped + after.deferred == after.emitted
    with open(log.path, "rb") as file:
        file.seek(before)
        new = file.read()
    assert new.count(b"\n") == (1 if recorded else 0)
    if recorded:
        event = orjson.loads(new)
        assert event["session_id"] == "s"
        assert "forged" not in event


def test_p01_all_that_was_written_can_be_read(log):
    """After all of it the log has no damage."""
    items = list(read_events(log.path))
    assert [item for item in items if not isinstance(item, Event)] == []
    assert json.loads(items[-1].raw)["seq"] == len(items) - 1
