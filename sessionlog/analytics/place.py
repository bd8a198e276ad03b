"""Reports over a place: a folder or URL with what machines have exported (`sessionlog export DEST --parquet`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from sessionlog.analytics.conditions import KEYS, TIME_KEYS
from sessionlog.analytics.window import utc_nanoseconds
from sessionlog.engine import is_place
from sessionlog.errors import InvalidQuery, MissingExtra
from sessionlog.ledger.columns import Label

if TYPE_CHECKING:
    from sessionlog.ledger.book import Book
    from sessionlog.pricing.book import PriceBook
    from sessionlog.pricing.seed_table import PricingTable

_T = TypeVar("_T")

_ALWAYS = ("provider", "model", "granularity", "quality")
"""Names that every report needs: those of rows, and those of its provenance."""


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


def answer_from_places(
    places: Sequence[str],
    fold: Callable[[Book], _T],
    *,
    by: Sequence[str],
    filters: Mapping[str, Sequence[str]],
    is_timed: bool,
    prices: PriceBook | PricingTable | None,
    now: datetime | None,
) -> _T:
    """Call `fold` with a book of what machines have exported, and return its result.

    Args:
        places: Folders or URLs.
        fold: Makes the report.
        by: Its group keys, as the user gave them.
        filters: Its filters.
        is_timed: Whether it needs the times of what it sums.
        prices: The prices of `Question`.
        now: The present; None for this moment.

    Raises:
        MissingExtra: The extra `parquet`, or for a URL `remote`, is not installed.
        InvalidQuery: The report needs what is not exported.
        LogNotReadable: A place cannot be read.
    """
    keys = [*by, *filters]
    for key in keys:
        if key == "route" or key.startswith("meta."):
            raise InvalidQuery(f"{places[0]}: what machines export has no {key}; `sessionlog usage --by {key}` has it")
    # config.toml's own prices are for all reports: only those that a question itself names contradict the export's
    if getattr(prices, "instead_of", prices) is not None:
        raise InvalidQuery(f"{places[0]}: costs are those of the export: leave out --prices, which are for logs")
    try:
        from sessionlog.engine.place_book import ask_places
    except ImportError as error:
        raise MissingExtra(f"{places[0]} has parquet files, which need: pip install 'sessionlog[parquet]'") from error
    is_plain = all(key in KEYS for key in keys)
    return ask_places(
        places,
        fold,
        now_ns=utc_nanoseconds(now or datetime.now(UTC)),
        labels=_labels_of(keys) if is_plain else Label._fields,
        by_time=is_timed or not is_plain or not TIME_KEYS.isdisjoint(keys),
        by_machine="machine" in keys or not is_plain,
    )


def _labels_of(keys: Iterable[str]) -> list[str]:
    """Return the names of labels that the expressions of group keys read."""
    read = {*_ALWAYS, *(name for key in keys for name in re.findall(r"\bl\.(\w+)", KEYS[key]))}
    return [name for name in Label._fields if name in read]
