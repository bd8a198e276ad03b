"""Reports over a place: a folder or URL with what machines have exported (`sessionlog export DEST --parquet`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from sessionlog.analytics.conditions import KEYS, TIME_KEYS
from sessionlog.analytics.window import utc_nanoseconds
from sessionlog.engine.place import is_place
from sessionlog.errors import InvalidQuery, MissingExtra
from sessionlog.ledger.schema import LABEL

if TYPE_CHECKING:
    from sessionlog.analytics.question import Question
    from sessionlog.ledger.reading import ReadBook
    from sessionlog.pricing.book import PriceBook

_T = TypeVar("_T")

_ALWAYS = ("provider", "model", "granularity", "quality")
"""Names that every report needs: of rows, or to tell exact numbers from others."""


def places_among(paths: Sequence[str]) -> list[str]:
    """Return the paths that are places; none if all are logs.

    Raises:
        InvalidQuery: There are both.
    """
    found = [path for path in paths if is_place(path)]
    if found and len(found) < len(paths):
        [log, *_] = [path for path in paths if path not in found]
        raise InvalidQuery(f"{found[0]} is an export of machines and {log} is not: give only one kind of PATH")
    return found


def answer_from_places(question: Question, places: Sequence[str], fold: Callable[[ReadBook], _T]) -> _T:
    """Call `fold` with a book of what machines have exported, and return its result.

    Raises:
        MissingExtra: The extra `parquet`, or for a URL `remote`, is not installed.
        InvalidQuery: The question needs what is not exported.
        LogNotReadable: A place cannot be read.
    """
    keys = [*(question.by or ()), *(question.filters or {})]
    for key in keys:
        if key == "route" or key.startswith("meta."):
            raise InvalidQuery(f"{places[0]}: what machines export has no {key}; `sessionlog usage --by {key}` has it")
    if question.prices is not None and _are_given(question.prices):
        raise InvalidQuery(f"{places[0]}: costs are those of the export: leave out --prices, which are for logs")
    try:
        from sessionlog.engine.place_book import ask_places
    except ImportError as error:
        raise MissingExtra(f"{places[0]} has parquet files, which need: pip install 'sessionlog[parquet]'") from error
    is_plain = all(key in KEYS for key in keys)
    return ask_places(
        places,
        fold,
        now_ns=utc_nanoseconds(question.now or datetime.now(UTC)),
        labels={*_ALWAYS, *keys} & {*LABEL} if is_plain else LABEL,
        by_time=bool(question.window or question.since or question.until) or not is_plain or not TIME_KEYS.isdisjoint(keys),
        by_machine="machine" in keys or not is_plain,
    )


def _are_given(prices: object) -> bool:
    """Whether prices are of the question itself, not of config.toml, which are for all reports."""
    return not hasattr(prices, "instead_of") or prices.instead_of is not None
