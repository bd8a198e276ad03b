"""event_strategy: generates events for property tests."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sessionlog.errors import MissingExtra
from sessionlog.events.envelope import KNOWN_TYPES, Event
from sessionlog.events.times import format_time

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


def event_strategy(*, types: Sequence[str] | None = None) -> SearchStrategy[Event]:
    """Return a hypothesis strategy for events: known and unknown types, any JSON payload, sometimes unknown keys.

    Every generated event survives writing and reading unchanged.

    Args:
        types: The types to choose from; any by default.

    Raises:
        MissingExtra: hypothesis is not installed.
    """
    try:
        from hypothesis import strategies as st
    except ImportError as error:
        raise MissingExtra("generating events needs: pip install hypothesis") from error
    text = st.text(st.characters(codec="utf-8"), max_size=40)
    scalars = (
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**64 - 1)
        | st.floats(allow_nan=False, allow_infinity=False)
        | text
    )
    values = st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4), max_leaves=12
    )
    known = st.sampled_from(sorted(KNOWN_TYPES))
    letters = string.ascii_letters + string.digits
    envelope = {"session_id", "seq", "type", "ts", "data"}
    return st.builds(
        Event,
        session_id=st.text(letters + "-_.", min_size=1, max_size=24),
        seq=st.integers(0, 2**53),
        type=st.sampled_from(types) if types else known | st.from_regex(r"[a-z]{1,8}(\.[a-z]{1,8})?", fullmatch=True),
        ts=st.integers(0, 4_102_444_800_000_000).map(lambda microseconds: format_time(microseconds * 1000)),
        data=st.dictionaries(text, values, max_size=5) | values,
        extra=st.just({}) | st.dictionaries(text.filter(lambda key: key not in envelope), values, max_size=2),
    )
