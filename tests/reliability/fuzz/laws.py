"""What a target is, what breaks its laws, and the limit of processor time per input."""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

LIMIT_SECONDS = 2.0
"""Processor time that one input may take; a machine that is busy with other things does not count."""

Check = Callable[[bytes], None]


class LawBroken(AssertionError):
    """A result that must not be, though nothing was raised."""


class TooLong(BaseException):
    """An input took more than the limit; no `except Exception` of the product may hide it."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """A target that is ready: what to call with each input, and the inputs to begin with.

    Attributes:
        check: Raises whatever must not happen.
        seeds: Inputs that are known to be of use.
        header: Bytes at the beginning of an input that choose what is tried; mutators leave them alone.
    """

    check: Check
    seeds: Sequence[bytes]
    header: int = 0


@dataclass(frozen=True, slots=True)
class Target:
    """One parser, or one family of them.

    Attributes:
        name: Its name on the command line and in findings.
        make: Gets it ready in an empty folder.
        share: How many of 1,000 runs over all targets are its own.
        needs: An environment variable without which it has nothing to try; "" for none.
    """

    name: str
    make: Callable[[Path], Inputs]
    share: int
    needs: str = ""


def demand(condition: object, what: str) -> None:
    """Raise `LawBroken` unless a law holds."""
    if not condition:
        raise LawBroken(what)


@contextmanager
def limited(seconds: float = LIMIT_SECONDS) -> Iterator[None]:
    """Raise `TooLong` in the block when it has used so much processor time."""

    def end(number: int, frame: FrameType | None) -> NoReturn:
        raise TooLong(f"more than {seconds} s of processor time")

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
