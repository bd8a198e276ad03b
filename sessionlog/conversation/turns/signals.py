"""Signals: SIGTERM and Ctrl-C end a turn properly, also while its stream is suspended in somebody's loop.

Only where nobody else has said what such a signal does, only in the main thread, and only while somebody watches: then
what a signal raises is told to all who watch, and raised where the program is. SIGTERM is `SystemExit(143)`.
"""

from __future__ import annotations

import signal
import threading
from contextlib import suppress
from types import FrameType
from typing import Any, Protocol
from weakref import WeakSet


class Watcher(Protocol):
    """Who is told what a signal is about to raise."""

    def interrupted_by(self, error: BaseException) -> None:
        """Put everything in order; it is raised right after."""


_DEFAULTS = {signal.SIGTERM: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
_watchers: WeakSet[Watcher] = WeakSet()  # weak: a stream that nobody holds any more is over
_previous: dict[int, Any] = {}


def watch(watcher: Watcher) -> None:
    """Tell someone of signals from now on; does nothing outside of the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return
    _watchers.add(watcher)
    for number, default in _DEFAULTS.items():
        if signal.getsignal(number) == default:
            _previous[number] = signal.signal(number, _on_signal)


def unwatch(watcher: Watcher) -> None:
    """Tell them no more; with the last one, signals do what they did before."""
    _watchers.discard(watcher)
    if _watchers:
        return
    for number in list(_previous):
        with suppress(ValueError):  # not in the main thread: the next one to watch there finds ours in place
            if signal.getsignal(number) is _on_signal:
                signal.signal(number, _previous[number])
            del _previous[number]


def _on_signal(number: int, _frame: FrameType | None) -> None:
    error = KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)
    for watcher in list(_watchers):
        watcher.interrupted_by(error)
    raise error
