"""The same dataclasses twice: made by `sessionlog.fast_dataclasses`, and by the standard library."""

from __future__ import annotations

import sys
from typing import ClassVar

from sessionlog import fast_dataclasses


def make_classes(dataclass, field):
    """Return the classes by name."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Plain:
        kind: ClassVar[str] = "plain"
        a: int
        b: str = "b"

    @dataclass(frozen=True, slots=True)
    class Placed:
        a: int
        b: int = 2
        c: list[int] = field(default_factory=list, compare=False)
        d: int = field(default=3, kw_only=True)

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Child(Plain):
        b: str = "changed"
        e: int
        f: int = 0

    @dataclass(slots=True)
    class Changeable:
        a: int

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Checked:
        low: int
        high: int

        def __post_init__(self):
            if self.low > self.high:
                raise ValueError("low")

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Quiet:
        a: int
        secret: int = field(default=0, repr=False, compare=False)
        later: int = field(default=5, init=False)

    @dataclass(frozen=True, slots=True, eq=False)
    class ByIdentity:
        a: int = 1

    made = {name: cls for name, cls in locals().items() if isinstance(cls, type)}
    for name, cls in made.items():
        cls.__qualname__ = name
    return made


OURS = make_classes(fast_dataclasses.dataclass, fast_dataclasses.field)
globals().update(OURS)  # where pickle looks for them


def __getattr__(name):
    if name != "THEIRS":
        raise AttributeError(name)
    from dataclasses import dataclass, field

    made = make_classes(dataclass, field)
    setattr(sys.modules[__name__], name, made)
    return made
