"""Times as numbers: seconds, milli-, micro- or nanoseconds since 1970, told apart by their size."""

from __future__ import annotations

from typing import Any

_LIMIT = 2**63
_SCALES = ((1e11, 1_000_000_000), (1e14, 1_000_000), (1e17, 1_000))


def epoch_ns(value: Any) -> int | None:
    """Return nanoseconds since 1970, above 0 and below 2**63; None for what is no such time.

    Numbers up to the year 5138 count as seconds.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _LIMIT:  # NaN is not, either
        return None
    scale = next((scale for limit, scale in _SCALES if value < limit), 1)
    whole = int(value)
    time_ns = whole * scale + round((value - whole) * 1_000_000) * scale // 1_000_000
    return time_ns if 0 < time_ns < _LIMIT else None
