"""Signals are told to whoever watches, and nobody else's word on them is overruled."""

import os
import signal
import threading

import pytest

from sessionlog.conversation.turns.streams import unwatch, watch


class Watching:
    """Notes what it is told."""

    def __init__(self):
        self.told = []

    def interrupted_by(self, error):
        self.told.append(error)


@pytest.mark.parametrize(("number", "error"), [(signal.SIGTERM, SystemExit), (signal.SIGINT, KeyboardInterrupt)])
def test_a_signal_is_told_and_then_raised(number, error):
    """The same exception, to all who watch."""
    first, second, third = Watching(), Watching(), Watching()
    for one in (first, second, third):
        watch(one)
    unwatch(third)
    with pytest.raises(error) as caught:
        os.kill(os.getpid(), number)
    unwatch(first)
    unwatch(second)
    assert first.told == second.told == [caught.value]
    assert third.told == []
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_who_is_forgotten_is_not_told():
    """A stream that nobody holds any more has ended by itself."""
    watch(Watching())
    last = Watching()
    watch(last)
    unwatch(last)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_outside_of_the_main_thread_nothing_is_watched():
    """Python delivers signals to the main thread, and lets nobody else say what they do."""
    watching = Watching()
    thread = threading.Thread(target=lambda: (watch(watching), unwatch(watching)))
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_last_watcher_that_ends_in_another_thread_leaves_the_rest_to_the_next():
    """Which may only happen in the main thread."""
    watching = Watching()
    watch(watching)
    thread = threading.Thread(target=unwatch, args=(watching,))
    thread.start()
    thread.join()
    watch(watching)
    unwatch(watching)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_that_somebody_sets_meanwhile_stays():
    """It is theirs."""
    watching = Watching()
    watch(watching)
    mine = lambda *_: None  # noqa: E731 - a handler
    try:
        signal.signal(signal.SIGTERM, mine)
        unwatch(watching)
        assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
