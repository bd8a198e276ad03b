"""Which sources there are: ours by name, others by entry point; each is imported when it is needed."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points

from sessionlog.errors import InvalidQuery
from sessionlog.sources.protocol import Source

GROUP = "sessionlog.sources"
"""The entry-point group of sources in other packages."""

OURS = {
    "native": "native",
    "fizeau": "fizeau",
    "claude-code": "claude_code",
    "codex": "codex",
    "gemini": "gemini",
    "openclaw": "openclaw",
    "pi": "pi",
    "opencode": "opencode",
    "kilo": "kilo",
    "mimo": "mimo",
    "qwen-code": "qwen_code",
    "kimi": "kimi",
    "llm": "llm",
    "otel": "otel",
}
"""Id → module, in the order in which a log of unknown origin is shown to them."""

_TWINS = {"native": "fizeau", "fizeau": "native"}
"""Sources of one format: the log itself tells whose it is."""


@cache
def load_source(source_id: str) -> Source:
    """Return one of our own sources.

    Raises:
        InvalidQuery: There is none with that id.
    """
    if source_id not in OURS:
        raise InvalidQuery(f"there is no source {source_id!r}; there are {', '.join(OURS)}")
    source: Source = import_module(f"sessionlog.sources.{OURS[source_id]}").SOURCE
    return source


@cache
def all_sources() -> tuple[Source, ...]:
    """Return ours and those that other packages add, which cannot take the place of ours."""
    others = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    return (*map(load_source, OURS), *(point.load() for point in others if point.name not in OURS))


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
            raise InvalidQuery(f"there is no source {pattern!r}; there are {', '.join(s.id for s in known)}")
        chosen |= fitting
    chosen |= {twin for source_id, twin in _TWINS.items() if source_id in chosen}
    return tuple(source for source in known if source.id in chosen)
