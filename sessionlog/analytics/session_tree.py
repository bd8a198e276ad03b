"""A tree of sessions: forks below the session that they were forked from.

The invariant: each session of the list occurs exactly once. A parent that is not in the list gets an entry with its
name alone. Sessions that are each other's ancestors in a cycle become roots; their other forks stay below them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sessionlog.analytics.sessions import SessionSummary

GENERATIONS = 8
"""The number of generations that are indented; deeper forks have the indentation of the last one."""

Key = tuple[str, str]
"""Source and id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A node of the tree.

    Attributes:
        key: The key of the session.
        session: The session; None for a parent that is not in the list.
        lasts: For each generation down to this one, at most `GENERATIONS`, whether it is the last sibling; empty for a
            root.
        depth: The number of generations above it.
    """

    key: Key
    session: SessionSummary | None
    lasts: tuple[bool, ...] = ()
    depth: int = 0


def key_of(session: SessionSummary) -> Key:
    """Return the key of a session."""
    return session.source, session.session


def grow_tree(sessions: Sequence[SessionSummary]) -> list[Branch]:
    """Return the nodes with forks below their parents; roots and siblings keep the order of the list."""
    places: dict[Key, int] = {}
    for index, session in enumerate(sessions):
        places.setdefault(key_of(session), index)
    sources: dict[str, Key] = {}
    for key in places:
        sources.setdefault(key[1], key)
    named = [_parent(session, places, sources) for session in sessions]
    cycles = _cycles(named, places)
    parents = [None if index in cycles else parent for index, parent in enumerate(named)]
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
            tree += _subtree(index, sessions, places, forks, seen)
            continue
        tree.append(Branch(key=parent, session=None))
        for fork in forks[parent]:
            lasts = (fork == forks[parent][-1],)
            tree += _subtree(fork, sessions, places, forks, seen, lasts)
    return tree


def _parent(session: SessionSummary, places: Mapping[Key, int], sources: Mapping[str, Key]) -> Key | None:
    """The key of the parent: a session of the same source; a native session may be a fork of any source's."""
    if not session.parent:
        return None
    key = session.source, session.parent
    if session.source == "native" and key not in places:
        key = sources.get(session.parent, key)
    return None if key == key_of(session) else key


def _cycles(parents: Sequence[Key | None], places: dict[Key, int]) -> set[int]:
    """The sessions that are their own ancestors."""
    cycles: set[int] = set()
    seen: set[int] = set()
    for start in range(len(parents)):
        path: dict[int, int] = {}
        index: int | None = start
        while index is not None and index not in seen:
            path[index] = len(path)
            seen.add(index)
            parent = parents[index]
            index = None if parent is None else places.get(parent)
        if index in path:
            cycles.update(one for one, place in path.items() if place >= path[index])
    return cycles


def _subtree(
    root: int,
    sessions: Sequence[SessionSummary],
    places: dict[Key, int],
    forks: dict[Key, list[int]],
    seen: set[int],
    lasts: tuple[bool, ...] = (),
) -> Iterator[Branch]:
    """Yield a session and its descendants; if several logs have the same id, the first one has the forks."""
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
