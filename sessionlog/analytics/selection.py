"""Selection: which records a report asks for, and by what it groups them, as SQL over the ledger's schema.

Values never become SQL text: they are bound. Group keys come from a closed list, `meta.KEY` apart, whose key is bound
too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import cache
from typing import Any, ClassVar, Self

from sessionlog.analytics.conditions import FILTERS, KEYS, counted, within_64_bits
from sessionlog.analytics.window import UsageWindow, parse_usage_window
from sessionlog.analytics.worktrees import main_folder
from sessionlog.analytics.zones import PERIOD_KEYS, resolve_zone
from sessionlog.errors import InvalidQuery
from sessionlog.ledger.quarter_hours import parts
from sessionlog.ledger.reading import ReadBook

_QUARTER_NS = 900 * 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What a report is about.

    Attributes:
        window: Which responses, by their own time; None for all.
        by: Group keys.
        filters: Key → a glob pattern, or several of which one must match, whatever the case.
        zone: Whose days and hours.
        now_ns: Tells running from unfinished.
        merge_worktrees: A git worktree counts as the project it belongs to.
        expressions: Group key → SQL.
        known_filters: The keys by which can be filtered.
    """

    expressions: ClassVar[Mapping[str, str]] = KEYS
    known_filters: ClassVar[Sequence[str]] = FILTERS

    window: UsageWindow | None
    by: tuple[str, ...]
    filters: Mapping[str, Sequence[str]]
    zone: tzinfo
    now_ns: int
    merge_worktrees: bool = False

    @classmethod
    def of(
        cls,
        window: UsageWindow | str | None,
        *,
        until: str | None,
        filters: Mapping[str, Sequence[str]] | None,
        tz: str | tzinfo,
        now: datetime | None,
        by: Sequence[str] = (),
        merge_worktrees: bool = False,
    ) -> Self:
        """Return the selection that a report's parameters mean.

        Raises:
            InvalidWindow: The window is outside the grammar.
            InvalidQuery: A group key or filter does not exist.
        """
        moment = now or datetime.now(UTC)
        return cls(
            window=parse_usage_window(window, until=until, now=moment, tz=tz),
            by=tuple(_known_key(key, cls.expressions) for key in by),
            filters=filters or {},
            zone=resolve_zone(tz),
            now_ns=int(moment.timestamp() * 1_000_000_000),
            merge_worktrees=merge_worktrees,
        )

    def __post_init__(self) -> None:
        for key in self.by:
            self.expression(key)
        if len(set(self.by)) != len(self.by):
            raise InvalidQuery(f"--by names a key twice: {', '.join(self.by)}")
        for key in self.filters:
            if key not in self.known_filters:
                raise InvalidQuery(f"there is no filter {key!r}; there are {', '.join(self.known_filters)}")

    def prepare(self, book: ReadBook) -> None:
        """Teach the book the functions that group keys and filters call."""
        book.define("lower_case", str.lower)
        book.define("project_key", cache(main_folder) if self.merge_worktrees else str)
        for name, key in PERIOD_KEYS.items():
            book.define(f"{name}_key", _per_quarter(key, self.zone))
        for index, name in enumerate(self.by):
            if name.startswith("meta."):
                book.define(_meta_function(index), _metadata_reader(name.removeprefix("meta.")))

    def expression(self, key: str) -> str:
        """Return the SQL of a group key; empty for `meta.KEY`, which a function of its own reads.

        Raises:
            InvalidQuery: There is no such key.
        """
        if key.startswith("meta.") and len(key) > len("meta."):
            return ""
        if key not in KEYS:
            raise InvalidQuery(f"cannot group by {key!r}; group by {', '.join(KEYS)} or meta.KEY")
        return KEYS[key]

    def keys(self) -> list[str]:
        """The SQL expressions of the group keys, in order."""
        return [
            f"{_meta_function(index)}(s.metadata)" if key.startswith("meta.") else self.expression(key)
            for index, key in enumerate(self.by)
        ]

    def where(self, *, listed_only: bool = False, timed: bool = True) -> tuple[str, dict[str, Any]]:
        """The condition on records `r` and sessions `s`, with its parameters (see `conditions.counted`).

        What comes from `parts` has been chosen by its time already.
        """
        condition, parameters = counted(
            self.filters, self.now_ns, listed_only=listed_only, expressions=self.expressions
        )
        if not timed:
            return condition, parameters
        timely, bounds = self.in_window()
        return f"{condition} AND {timely}", parameters | bounds

    def parts(self, window: UsageWindow | None = None) -> tuple[str, dict[str, int]]:
        """What counts in the window, or in another one: a table expression of sums and its parameters.

        See `ledger.quarter_hours`.
        """
        window = window or self.window
        return parts(None, None) if window is None else parts(window.start_ns, window.end_ns)

    def in_window(self) -> tuple[str, dict[str, Any]]:
        """The condition on `r.time_ns` alone."""
        conditions, parameters = ["1"], {}
        if self.window is not None and self.window.start_ns is not None:
            conditions.append("r.time_ns >= :start_ns")
            parameters["start_ns"] = within_64_bits(self.window.start_ns)
        if self.window is not None and self.window.end_ns is not None:
            conditions.append("r.time_ns < :end_ns")
            parameters["end_ns"] = within_64_bits(self.window.end_ns)
        return " AND ".join(conditions), parameters


def _known_key(key: str, known: Container[str]) -> str:
    """A group key as people say it: `days` is `day`, and so is `date`."""
    word = key.strip().lower()
    word = {"date": "day", "dates": "day"}.get(word, word)
    return next((one for one in (key, word, word.removesuffix("s")) if one in known), key)


def _meta_function(index: int) -> str:
    return f"meta_key_{index}"


def _per_quarter(key: Callable[[int, tzinfo], str], zone: tzinfo) -> Callable[[int | None], str]:
    """Cache a time key by quarter hours: every zone's offset is a multiple of them."""
    known: dict[int, str] = {}

    def lookup(time_ns: int | None) -> str:
        if time_ns is None:
            return "unknown"
        quarter = time_ns // _QUARTER_NS
        text = known.get(quarter)
        if text is None:
            text = known[quarter] = key(quarter * _QUARTER_NS, zone)
        return text

    return lookup


def _metadata_reader(key: str) -> Callable[[str], str]:
    def read(metadata: str) -> str:
        value = json.loads(metadata).get(key)
        if value is None or value == "":
            return "unknown"
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)

    return read
