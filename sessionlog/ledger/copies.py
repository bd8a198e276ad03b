"""Which copy of a response counts: each is entered once, however many logs repeat it.

The source names a response by its key; the rules are the same for all sources and do not depend on the order in which
logs are read (the tests try every order):

- Copies of one key: the higher standing wins, then the greatest output, then the greatest total. Its counts, cost and
  speed are the record's; session, project and time are those of the earliest copy of that standing (time, then path).
- A record that is not REAL does not count beside a REAL one of its family.
"""

from __future__ import annotations

from typing import NamedTuple

from sessionlog.sources.record import Standing


class Copy(NamedTuple):
    """A record as it is weighed.

    Attributes:
        key: The response's key.
        standing: See `Standing`.
        output: Output tokens.
        total: All tokens.
        time_ns: When it was answered.
        path: The log it stands in.
    """

    key: str
    standing: int
    output: int
    total: int
    time_ns: int | None
    path: str

    @property
    def weight(self) -> tuple[int, int]:
        """What decides between two copies of the same standing."""
        return self.output, self.total

    @property
    def age(self) -> tuple[bool, int, bytes]:
        """What tells the earliest copy."""
        return self.time_ns is None, self.time_ns or 0, self.path.encode("utf-8", "surrogatepass")


class Verdict(NamedTuple):
    """What is to be done about a new copy beside one that is known.

    Attributes:
        counts: Its counts replace the known ones.
        place: Its session, project and time replace the known ones.
    """

    counts: bool
    place: bool


def weigh(known: Copy, new: Copy) -> Verdict:
    """Compare two copies of one key."""
    if known.standing != new.standing:
        better = new.standing > known.standing
        return Verdict(counts=better, place=better)
    return Verdict(counts=new.weight > known.weight, place=new.age < known.age)


def yields(one: Copy, other: Copy) -> bool:
    """Whether `one` does not count because of `other`, which is of its family and has another key."""
    return one.standing < Standing.REAL <= other.standing
