"""How a turn is ended from outside: asked to stop, or left by whoever was listening.

Neither is an error of the agent, so neither is an `Exception`: nothing that tries again or turns errors into results
may take them for one.
"""

from __future__ import annotations

from collections.abc import Callable


class Stopped(BaseException):
    """The turn was asked to stop."""


class Closed(BaseException):
    """The stream was closed, or forgotten, before its end."""


class Stop:
    """A wish to stop, made from any thread or from a signal handler: so without a lock.

    Attributes:
        requested: Somebody wants the turn to end after the piece at hand.
        wake: Ends the wait for the piece at hand, where it can be ended; set by whoever waits.
    """

    __slots__ = ("requested", "wake")

    def __init__(self) -> None:
        self.requested = False
        self.wake: Callable[[], object] | None = None

    def request(self) -> None:
        """Ask the turn to stop."""
        self.requested = True
        wake = self.wake
        if wake is not None:
            wake()

    def check(self) -> None:
        """Raise `Stopped` if that was asked for."""
        if self.requested:
            raise Stopped
