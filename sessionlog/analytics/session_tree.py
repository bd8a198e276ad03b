"""Forks below the session that they were forked from, as far as both are in one list.

The invariant: every session of the list comes out once, whatever their parents are called: a parent that is not in
the list stands there by its name alone, and sessions that name each other in a circle are none's forks, though others
are theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sessionlog.analytics.sessions import SessionSummary

GENERATIONS = 8
"""How many generations of forks are told apart by their place; all below stand in the last one's."""

Key = tuple[str, str]
"""Source and id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A place in the tree.

    Attributes:
        key: Whose it is.
        session: The session; None for a parent that is not in the list.
        lasts: For each generation down to this one, of many the first, whether no sibling comes after it; empty for
            what is no fork here.
        depth: How many generations of forks there are down to this one.
    """

    key: Key
    session: SessionSummary | None
    lasts: tuple[bool, ...] = ()
    depth: int = 0


def key_of(session: SessionSummary) -> Key:
    """What a session is known by."""
    return session.source, session.session


def grow_tree(sessions: Sequence[SessionSummary]) -> list[Branch]:
    """Put forks below their parents; all else, and the forks of one parent, stay in the order of the list."""
    places: dict[Key, int] = {}
    for index, session in enumerate(sessions):
        places.setdefault(key_of(session), index)
    sources: dict[str, Key] = {}
    for key in places:
        sources.setdefault(key[1], key)
    named = [_parent(session, places, sources) for session in sessions]
    circles = _circles(named, places)
    parents = [None if index in circles else parent for index, parent in enumerate(named)]
    forks: dict[Key, list[int]] = {}
    for index, parent in enumerate(parents):
        if parent is not None:
            forks.setdefault(parent, []).append(index)
    tree: list[Branch] = []
    seen: set[int] = set()
    for index, parent in enumerate(parents):
        if index in seen or parent in places:
            continue
        if parent is None:
            tree += _grown(index, sessions, places, forks, seen)
            continue
        tree.append(Branch(key=parent, session=None))
        for fork in forks[parent]:
            lasts = (fork == forks[parent][-1],)
            tree += _grown(fork, sessions, places, forks, seen, lasts)
    return tree


def _parent(session: SessionSummary, places: Mapping[Key, int], sources: Mapping[str, Key]) -> Key | None:
    """Whose fork it is: a session of the same agent, but our own may go on from any agent's."""
    if not session.parent:
        return None
    key = session.source, session.parent
    if session.source == "native" and key not in places:
        key = sources.get(session.parent, key)
    return None if key == key_of(session) else key


def _circles(parents: Sequence[Key | None], places: dict[Key, int]) -> set[int]:
    """Sessions that are above themselves."""
    circles: set[int] = set()
    seen: set[int] = set()
    for start in range(len(parents)):
        way: dict[int, int] = {}
        index: int | None = start
        while index is not None and index not in seen:
            way[index] = len(way)
            seen.add(index)
            parent = parents[index]
            index = None if parent is None else places.get(parent)
        if index in way:
            circles.update(one for one, place in way.items() if place >= way[index])
    return circles


def _grown(
    root: int,
    sessions: Sequence[SessionSummary],
    places: dict[Key, int],
    forks: dict[Key, list[int]],
    seen: set[int],
    lasts: tuple[bool, ...] = (),
) -> Iterator[Branch]:
    """A session and all below it; of several logs with one id the first has the forks."""
    stack = [(root, lasts, len(lasts))]
    while stack:
        index, above, depth = stack.pop()
        if index in seen:
            continue
        seen.add(index)
        session = sessions[index]
        yield Branch(key=key_of(session), session=session, lasts=above, depth=depth)
        below = forks.get(key_of(session), []) if places[key_of(session)] == index else []
        left = [fork for fork in below if fork not in seen]
        stack += [(fork, (*above, fork == left[-1])[:GENERATIONS], depth + 1) for fork in reversed(left)]
