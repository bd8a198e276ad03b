"""Registry: the built-in sources by name, others by entry point; each is imported when it is needed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module

from msgspec import Struct

from sessionlog import files
from sessionlog.errors import InvalidQuery, Problem
from sessionlog.sources.names import OURS, choose_ids
from sessionlog.sources.places import searched
from sessionlog.sources.protocol import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "sessionlog.sources"
"""The entry-point group of sources in other packages."""


@cache
def load_source(source_id: str) -> Source:
    """Return a built-in source.

    Raises:
        InvalidQuery: There is none with that id.
    """
    if source_id not in OURS:
        raise InvalidQuery(f"there is no source {source_id!r}; there are {', '.join(OURS)}")
    source: Source = import_module(f"sessionlog.sources.{source_id.replace('-', '_')}").SOURCE
    return source


def entry_points(*, group: str) -> Iterable[EntryPoint]:
    """Return the entry points of other packages in a group; without any, `importlib.metadata` would cost 14 ms."""
    if not any(_may_have(path, group) for path in dict.fromkeys(sys.path)):
        return ()
    from importlib import metadata

    return metadata.entry_points(group=group)


def _may_have(path: str, group: str) -> bool:
    """Whether a package in a place of `sys.path` may name a group; True where only `importlib.metadata` can look."""
    try:
        for name in os.listdir(path or os.curdir):
            if name.endswith(".egg"):
                return True
            if name.endswith((".dist-info", ".egg-info")):
                named = files.read_small(os.path.join(path, name, "entry_points.txt"))
                if named is not None and group.encode() in named:
                    return True
    except FileNotFoundError:
        return False
    except OSError:  # no folder, such as a zip
        return True
    return False


class Registry(Struct, frozen=True, kw_only=True):
    """All sources.

    Attributes:
        sources: The built-in ones, then those of other packages.
        problems: Sources that cannot be used: a broken package must not break the reports of other agents.
    """

    sources: tuple[Source, ...]
    problems: tuple[Problem, ...] = ()


@cache
def other_sources() -> Registry:
    """Return the sources of other packages; one cannot replace a built-in one, or another package's."""
    known: dict[str, Source] = {}
    problems = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        added = _load(point)
        if isinstance(added, Source) and added.id not in {*OURS, *known}:
            known[added.id] = added
            continue
        detail = f"there is a source {added.id!r} already" if isinstance(added, Source) else added
        problems.append(Problem(path=f"plug-in {point.name} ({point.value})", kind="unreadable", detail=detail))
    return Registry(sources=tuple(known.values()), problems=tuple(problems))


def registry() -> Registry:
    """Return all sources."""
    others = other_sources()
    return Registry(sources=(*map(load_source, OURS), *others.sources), problems=others.problems)


def _load(point: EntryPoint) -> Source | str:
    """Return the source of another package, or why it cannot be used."""
    try:
        added = point.load()
    except Exception as error:  # noqa: BLE001 - importing another package may raise anything
        return f"{type(error).__name__}: {error}"
    return added if isinstance(added, Source) else f"a {type(added).__name__} is no Source"


def each_source() -> Iterator[Source]:
    """Yield the sources of `all_sources`, importing each on demand."""
    yield from map(load_source, OURS)
    yield from other_sources().sources


def all_sources() -> tuple[Source, ...]:
    """Return the built-in sources and those of other packages."""
    return registry().sources


def sources_there(env: Mapping[str, str]) -> tuple[Source, ...]:
    """Return the sources of agents that have a folder here, and those of other packages; no others are imported."""
    there = [one for one, places in searched(env).items() if any(files.why_absent(place) != "" for place in places)]
    return (*map(load_source, there), *other_sources().sources)


def all_places(env: Mapping[str, str]) -> list[str]:
    """Return the paths where logs may be, existing or not; only the sources of other packages are imported."""
    places = [place for places in searched(env).values() for place in places]
    return places + [place for source in other_sources().sources for place in source.locate(env)]


def source_of(source_id: str) -> Source:
    """Return a source by its id; a built-in one without searching other packages."""
    if source_id in OURS:
        return load_source(source_id)
    return next(source for source in all_sources() if source.id == source_id)


def choose_sources(patterns: Sequence[str] = ()) -> tuple[Source, ...]:
    """Return the sources whose ids match one of the glob patterns; all without patterns.

    Sources that share a format are returned together.

    Raises:
        InvalidQuery: A pattern matches no source.
    """
    known = all_sources()
    chosen = choose_ids([source.id for source in known], patterns)
    return tuple(source for source in known if source.id in chosen)
