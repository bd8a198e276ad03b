"""`sessionlog.fast_dataclasses`: what a class of the standard library does, one of ours does."""

import copy
import dataclasses
import functools
import pickle
import subprocess
import sys

import msgspec
import orjson
import pytest

from sessionlog import fast_dataclasses as fast
from tests.example_dataclasses import OURS, THEIRS

VALUES = {
    "Plain": [((), {}), ((), {"a": 1}), ((), {"a": 1, "b": "x"}), ((1,), {}), ((), {"c": 1})],
    "Placed": [((1,), {}), ((1, 2), {}), ((1, 2, 3), {}), ((1,), {"c": [7]}), ((), {"a": 1, "d": 4}), ((1, 2), {"b": 2})],
    "Child": [((), {"a": 1, "e": 5}), ((), {"a": 1}), ((), {"e": 5}), ((), {"a": 2, "b": "z", "e": 0, "f": 1})],
    "Changeable": [((1,), {}), ((), {})],
    "Checked": [((), {"low": 1, "high": 2}), ((), {"low": 2, "high": 1})],
    "Quiet": [((), {"a": 1, "secret": 2}), ((), {"a": 1, "later": 3})],
    "ByIdentity": [((), {"a": 1})],
}  # fmt: skip


def outcome(call):
    """What a call returns, as text, or the kind of error that it raises."""
    try:
        return repr(call())
    except Exception as error:
        return type(error).__name__


@pytest.mark.parametrize(("name", "args", "kwargs"), [(name, *one) for name, some in VALUES.items() for one in some])
def test_a_value_is_as_one_of_the_standard_library(name, args, kwargs):
    """Whatever can be done to a value gives the same with both, or the same error."""

    def look(classes):
        made = classes[name](*args, **kwargs)
        first = dataclasses.fields(made)[0].name
        return (
            repr(made), dataclasses.asdict(made), dataclasses.astuple(made), dataclasses.is_dataclass(made),
            made == classes[name](*args, **kwargs), made != classes[name](*args, **kwargs), made == object(),
            outcome(lambda: hash(made) == hash(classes[name](*args, **kwargs))),
            outcome(lambda: setattr(made, first, 5)), outcome(lambda: delattr(made, first)),
            outcome(lambda: setattr(made, "unknown", 5)).endswith("Error"), outcome(lambda: vars(made)),
            type(made).__match_args__,
            msgspec.to_builtins(made),
        )  # fmt: skip

    assert outcome(lambda: look(OURS)) == outcome(lambda: look(THEIRS))


@pytest.mark.parametrize("name", VALUES)
def test_the_standard_library_knows_the_fields(name):
    """`dataclasses.fields` gives the same fields with the same settings."""

    def known(cls):
        return [
            (one.name, one.type, one.default, one.init, one.repr, one.compare, one.kw_only)
            for one in dataclasses.fields(cls)
            if one.default_factory is dataclasses.MISSING
        ]

    assert known(OURS[name]) == known(THEIRS[name])


def test_orjson_refuses_one_instead_of_crashing():
    """It takes `__dataclass_fields__` in a class's own dictionary for a dictionary, whatever it is."""
    made = OURS["Plain"](a=1)
    dataclasses.fields(made)
    with pytest.raises(TypeError, match="Plain"):
        orjson.dumps(made)
    assert orjson.dumps(made, default=dataclasses.asdict) == b'{"a":1,"b":"b"}'


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_a_copy_is_equal(name, again):
    """Copied and pickled values are equal to their originals."""
    makers = (functools.partial(OURS[name], *args, **kwargs) for args, kwargs in VALUES[name])
    made = next(make() for make in makers if outcome(make) != "TypeError")
    assert repr(again(made)) == repr(made)


@pytest.mark.parametrize("replaced", [fast.replace, dataclasses.replace])
def test_replace_makes_another_value(replaced):
    """Both functions check the new value and leave the old one as it was."""
    made = OURS["Checked"](low=1, high=2)
    assert replaced(made, high=3) == OURS["Checked"](low=1, high=3)
    assert made.high == 2
    with pytest.raises(ValueError, match="low"):
        replaced(made, low=9)
    with pytest.raises(TypeError):
        replaced(made, unknown=1)


def test_each_value_has_a_default_of_its_own():
    """A default factory is called for each value."""
    first, second = OURS["Placed"](1), OURS["Placed"](1)
    first.c.append(1)
    assert second.c == []


def test_a_plain_subclass_keeps_the_fields():
    """A class that is no dataclass itself may extend one."""

    class Loud(OURS["Checked"]):
        __slots__ = ()

        def __init__(self, low):
            super().__init__(low=low, high=low)

    assert [one.name for one in dataclasses.fields(Loud)] == ["low", "high"]
    assert Loud(3).high == 3
    assert OURS["Checked"](low=1, high=2).high == 2


def test_classes_and_values_are_made_without_the_standard_librarys():
    """Neither `dataclasses` nor `inspect` is imported."""
    program = (
        "import sys; from tests.example_dataclasses import make_classes; from sessionlog import fast_dataclasses as f;"
        "value = make_classes(f.dataclass, f.field)['Plain'](a=1); repr(value), hash(value), f.replace(value, a=2);"
        "assert 'dataclasses' not in sys.modules and 'inspect' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_dataclass_of_the_standard_library_may_extend_one():
    """With its fields and their defaults."""
    for frozen in (True, False):
        base = OURS["Plain" if frozen else "Changeable"]
        more = dataclasses.make_dataclass("More", [("extra", int, 0)], bases=(base,), frozen=frozen, kw_only=True)
        assert repr(more(a=1)).endswith("extra=0)")


def test_a_default_that_values_would_share_is_refused():
    """As by the standard library."""
    with pytest.raises(ValueError, match="mutable default"):
        fast.dataclass(slots=True)(type("Shared", (), {"__annotations__": {"x": "list"}, "x": []}))
