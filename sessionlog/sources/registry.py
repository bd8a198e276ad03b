"""Which sources there are: ours by name, others by entry point; each is imported when it is needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module

from msgspec import Struct

from sessionlog.errors import InvalidQuery, Problem
from sessionlog.sources.protocol import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "sessionlog.sources"
"""The entry-point group of sources in other packages."""

OURS = (
    "native",
    "fizeau",
    "claude-code",
    "codex",
    "gemini",
    "openclaw",
    "pi",
    "opencode",
    "kilo",
    "mimo",
    "qwen-code",
    "kimi",
    "llm",
    "otel",
    "copilot",
    "cline",
    "droid",
    "goose",
    "crush",
    "amp",
    "grok",
    "hermes",
)
"""Their ids, in the order in which a log of unknown origin is shown to them; a module has the name of its id."""

NATIVE = frozenset({"native", "fizeau"})
"""Sources of one format, our own: the content of a log decides whose it is."""


@cache
def load_source(source_id: str) -> Source:
    """Return one of our own sources.

    Raises:
        InvalidQuery: There is none with that id.
    """
    if source_id not in OURS:
        raise InvalidQuery(f"there is no source {source_id!r}; there are {', '.join(OURS)}")
    source: Source = import_module(f"sessionlog.sources.{source_id.replace('-', '_')}").SOURCE
    return source


def entry_points(*, group: str) -> Iterable[EntryPoint]:
    """Return what other packages name in a group."""
    from importlib import metadata  # noqa: PLC0415 - 30 ms, which scans by our own sources save

    return metadata.entry_points(group=group)


class Registry(Struct, frozen=True, kw_only=True):
    """What there is.

    Attributes:
        sources: Ours, then those that other packages add.
        problems: Those that cannot be used: a broken package must not take the reports of other agents with it.
    """

    sources: tuple[Source, ...]
    problems: tuple[Problem, ...] = ()


@cache
def registry() -> Registry:
    """Return all sources; others cannot take the place of ours, nor of each other."""
    known = {source_id: load_source(source_id) for source_id in OURS}
    problems = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        added = _load(point)
        if isinstance(added, Source) and added.id not in known:
            known[added.id] = added
            continue
        detail = f"there is a source {added.id!r} already" if isinstance(added, Source) else added
        problems.append(Problem(path=f"plug-in {point.name} ({point.value})", kind="unreadable", detail=detail))
    return Registry(sources=tuple(known.values()), problems=tuple(problems))


def _load(point: EntryPoint) -> Source | str:
    """The source of another package, or why it is none."""
    try:
        added = point.load()
    except Exception as error:  # noqa: BLE001 - whatever another package does when it is imported
        return f"{type(error).__name__}: {error}"
    return added if isinstance(added, Source) else f"a {type(added).__name__} is no Source"


def each_source() -> Iterator[Source]:
    """Yield what `all_sources` returns, each imported when it is asked for."""
    yield from map(load_source, OURS)
    yield from registry().sources[len(OURS) :]


def all_sources() -> tuple[Source, ...]:
    """Return ours and those that other packages add."""
    return registry().sources


def choose_sources(patterns: Sequence[str] = ()) -> tuple[Source, ...]:
    """Return the sources whose ids fit one of the glob patterns, all for none; formats that are shared come together.

    Raises:
        InvalidQuery: A pattern fits no source.
    """
    known = all_sources()
    if not patterns:
        return known
    chosen: set[str] = set()
    for pattern in patterns:
        fitting = {source.id for source in known if fnmatchcase(source.id, pattern.lower())}
        if not fitting:
            from difflib import get_close_matches  # noqa: PLC0415 - 5 ms, for a mistake

            ids = [source.id for source in known]
            near = [one for one in ids if pattern and pattern.lower() in one] or get_close_matches(pattern, ids)
            meant = f": did you mean {' or '.join(map(repr, near[:3]))}? There" if near else "; there"
            raise InvalidQuery(f"there is no source {pattern!r}{meant} are {', '.join(ids)}")
        chosen |= fitting
    if chosen & NATIVE:
        chosen |= NATIVE
    return tuple(source for source in known if source.id in chosen)
