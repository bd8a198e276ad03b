"""Selection: the records and group keys of a report, as SQL on the ledger's schema.

Values never become SQL text: they are bound. Group keys come from a closed list, except `meta.KEY`, whose key never
becomes SQL text either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sessionlog.analytics.conditions import FILTERS, KEYS, filter_condition, within_64_bits
from sessionlog.analytics.window import UsageWindow, present_time, utc_nanoseconds
from sessionlog.analytics.zones import PERIOD_KEYS, resolve_zone
from sessionlog.errors import InvalidQuery
from sessionlog.ledger.book import Book
from sessionlog.ledger.quarter_hours import OF_PARTS, parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence
    from datetime import datetime, tzinfo
    from typing import Any, Self

_QUARTER_NS = 900 * 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The records and group keys of a report.

    Attributes:
        window: The time window of responses, by their own time; None for all.
        by: Group keys.
        filters: Key → a glob pattern, or several of which one must match, in any case.
        zone: The time zone of days and hours; `local` for the machine's, which takes 4 ms to find.
        now_ns: The present, to distinguish running from unfinished sessions.
        merge_worktrees: Whether a git worktree counts as the project it belongs to.
        expressions: Group key → SQL.
        known_filters: The keys of filters.
    """

    expressions: ClassVar[Mapping[str, str]] = KEYS
    known_filters: ClassVar[Sequence[str]] = FILTERS

    window: UsageWindow | None
    by: tuple[str, ...]
    filters: Mapping[str, Sequence[str]]
    zone: str | tzinfo
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
        """Return the selection for a report's parameters.

        Raises:
            InvalidWindow: The window is outside the grammar.
            InvalidQuery: A group key or filter is unknown.
        """
        moment = present_time(now)
        return cls(
            window=_window(window, until, moment, tz),
            by=tuple(_known_key(key, cls.expressions) for key in by),
            filters=filters or {},
            zone=tz if tz == "local" else resolve_zone(tz),
            now_ns=utc_nanoseconds(moment),
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

    def prepare(self, book: Book) -> None:
        """Define the SQL functions that group keys and filters call."""
        book.define("lower_case", str.lower)
        project_key: Callable[[str], str] = str
        if self.merge_worktrees:
            from functools import cache

            from sessionlog.analytics.worktrees import main_folder

            project_key = cache(main_folder)
        book.define("project_key", project_key)
        book.define("machine_key", book.machine_of)
        for name in PERIOD_KEYS.keys() & self.by:
            book.define(f"{name}_key", _per_quarter(PERIOD_KEYS[name], resolve_zone(self.zone)))
        for index, name in enumerate(self.by):
            if name.startswith("meta."):
                book.define(_meta_function(index), _metadata_reader(name.removeprefix("meta.")))

    def expression(self, key: str) -> str:
        """Return the SQL of a group key; empty for `meta.KEY`, which has its own SQL function.

        Raises:
            InvalidQuery: The key is unknown.
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

    def where(self, *, listed_only: bool = False) -> tuple[str, dict[str, Any]]:
        """Return the condition on records `r` and sessions `s`, with its parameters (see `filter_condition`)."""
        condition, parameters = self.filtered(listed_only=listed_only)
        timely, bounds = self.in_window()
        return f"{condition} AND {timely}", parameters | bounds

    def sums(self, window: UsageWindow | None = None, *, listed_only: bool = False) -> tuple[str, str, dict[str, Any]]:
        """Return the tables of sums in the window, or in another one, their condition, and the parameters of both."""
        condition, parameters = self.filtered(listed_only=listed_only)
        tables, bounds = self.parts(window)
        return OF_PARTS.format(tables), condition, parameters | bounds

    def filtered(self, *, listed_only: bool = False) -> tuple[str, dict[str, Any]]:
        """Return the condition on sessions `s` and labels `l` alone, with its parameters (see `filter_condition`)."""
        return filter_condition(self.filters, self.now_ns, listed_only=listed_only, expressions=self.expressions)

    def parts(self, window: UsageWindow | None = None) -> tuple[str, dict[str, int]]:
        """Return the table expression of the sums in the window, or in another one, and its parameters.

        See `ledger.quarter_hours`.
        """
        window = window or self.window
        return parts(None, None) if window is None else parts(window.start_ns, window.end_ns)

    def cuts(self) -> set[int]:
        """Return the instants at which the window begins and ends."""
        window = self.window
        return set() if window is None else {cut for cut in (window.start_ns, window.end_ns) if cut is not None}

    def in_window(self) -> tuple[str, dict[str, Any]]:
        """Return the condition on `r.time_ns` alone, with its parameters."""
        conditions, parameters = ["1"], {}
        if self.window is not None and self.window.start_ns is not None:
            conditions.append("r.time_ns >= :start_ns")
            parameters["start_ns"] = within_64_bits(self.window.start_ns)
        if self.window is not None and self.window.end_ns is not None:
            conditions.append("r.time_ns < :end_ns")
            parameters["end_ns"] = within_64_bits(self.window.end_ns)
        return " AND ".join(conditions), parameters


def _window(window: UsageWindow | str | None, until: str | None, now: datetime, tz: str | tzinfo) -> UsageWindow | None:
    if window is None and until is None:
        return None
    from sessionlog.analytics.window_grammar import parse_usage_window

    return parse_usage_window(window, until=until, now=now, tz=tz)


def _known_key(key: str, known: Container[str]) -> str:
    """The group key of a user's spelling: `days` and `date` are `day`."""
    word = key.strip().lower()
    word = {"date": "day", "dates": "day"}.get(word, word)
    return next((one for one in (key, word, word.removesuffix("s")) if one in known), key)


def _meta_function(index: int) -> str:
    return f"meta_key_{index}"


def _per_quarter(key: Callable[[int, tzinfo], str], zone: tzinfo) -> Callable[[int | None], str]:
    """Cache a time key per quarter hour: every zone's offset is a multiple of it."""
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
    import json

    def read(metadata: str) -> str:
        value = json.loads(metadata).get(key)
        if value is None or value == "":
            return "unknown"
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)

    return read
