"""The ids of the sources, and the choice among them by patterns; no source is imported for it."""

from __future__ import annotations

from sessionlog.errors import InvalidQuery
from sessionlog.sources.places import PLACES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

OURS = tuple(PLACES)
"""The built-in ones, in the order in which they are tried on an unknown log; each module is named by its id."""

NATIVE = frozenset({"native", "fizeau"})
"""Sources that share the native format: the content of a log decides between them."""


def choose_ids(known: Sequence[str], patterns: Sequence[str]) -> frozenset[str]:
    """Return the ids that match one of the glob patterns; all without patterns.

    Sources that share a format are returned together.

    Raises:
        InvalidQuery: A pattern matches no source.
    """
    if not patterns:
        return frozenset(known)
    from fnmatch import fnmatchcase

    chosen: set[str] = set()
    for pattern in patterns:
        fitting = {one for one in known if fnmatchcase(one, pattern.lower())}
        if not fitting:
            from difflib import get_close_matches

            near = [one for one in known if pattern and pattern.lower() in one] or get_close_matches(pattern, known)
            meant = f": did you mean {' or '.join(map(repr, near[:3]))}? There" if near else "; there"
            raise InvalidQuery(f"there is no source {pattern!r}{meant} are {', '.join(known)}")
        chosen |= fitting
    if chosen & NATIVE:
        chosen |= NATIVE
    return frozenset(chosen)
